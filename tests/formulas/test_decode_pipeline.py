"""The time of a token in a pipeline, and the law that it makes, against micro-batches that really go round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulas import decode_pool
from formulas.closed_form import DomainError
from formulas.decode_pool import PIPELINE_ROUND, micro_batch, round_times
from formulas.montecarlo.pipelined_decode import simulate_pipelined_decode
from formulas.montecarlo.serving import Lengths, Workload, poisson_workload

FIXED, SLOPE, HOPS = 3e-3, 2e-5, 2e-4


def affine(stages, hops=HOPS):
    return lambda n: round_times(np.tile(FIXED + SLOPE * micro_batch(n, stages), (stages, 1)), hops)


def test_one_stage_is_the_pool_itself():
    n = np.arange(1.0, 50)
    assert affine(1, hops=0.0)(n) == pytest.approx(FIXED + SLOPE * n, rel=1e-15)


def test_the_formula_and_the_array_function_agree():
    stages = np.array([[0.010, 0.012], [0.011, 0.010], [0.009, 0.013]])
    for column, hops in ((0, 0.0), (1, 0.004)):
        form = PIPELINE_ROUND(stages=3, slowest_s=stages[:, column].max(), way_s=stages[:, column].sum() + hops)
        assert round_times(stages, hops)[column] == pytest.approx(form, rel=1e-15)


@given(
    st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=8),
    st.floats(0, 1.0),
)
def test_a_round_is_never_shorter_than_either_bound_and_no_longer_than_both(times, hops):
    found = float(round_times(np.array(times)[:, np.newaxis], hops)[0])
    slowest, way = len(times) * max(times), sum(times) + hops
    assert found >= slowest * (1 - 1e-12)
    assert found >= way * (1 - 1e-12)
    assert found <= slowest + hops + 1e-12


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("load", [0.05, 0.3])
def test_the_law_is_close_to_micro_batches_that_go_round(stages, load):
    step, steps = affine(stages), 63
    rate = load * decode_pool.capacity(steps, step)
    law = decode_pool.stationary_law(rate, steps, step)
    requests = 15_000
    workload = poisson_workload(rate, requests, Lengths(512), Lengths(steps + 1), seed=3)
    done = simulate_pipelined_decode(workload, [lambda n, _: FIXED + SLOPE * n] * stages, HOPS)
    times = ((done - workload.arrivals) / steps)[requests // 5 : -requests // 20]
    assert law.tpot_from_arrival() == pytest.approx(times.mean(), rel=0.012)
    assert law.tpot_from_arrival(0.9) == pytest.approx(np.quantile(times, 0.9), rel=0.015)


def test_with_constant_stages_and_few_requests_each_goes_round_alone():
    workload = Workload([0.0, 10.0], [5, 5], [11, 11])
    done = simulate_pipelined_decode(workload, [lambda *_: 0.02, lambda *_: 0.03], hops_s=0.004)
    assert done - workload.arrivals == pytest.approx([0.54 - 0.002 + 0.002, 0.54], rel=1e-12)


@pytest.mark.parametrize("stages", [0, -1])
def test_a_pipeline_without_stages_is_refused(stages):
    with pytest.raises(DomainError, match="at least one stage"):
        micro_batch([1.0], stages)
    with pytest.raises(DomainError, match="at least one stage"):
        round_times(np.empty((0, 3)))
