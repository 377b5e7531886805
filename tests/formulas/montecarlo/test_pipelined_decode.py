"""The pipelined decode simulation: one stage against the event simulation of an instance, several by hand."""

import numpy as np
import pytest

from formulas.montecarlo.pipelined_decode import simulate_pipelined_decode
from formulas.montecarlo.serving import AffineStep, InstanceSettings, Lengths, Workload, poisson_workload, simulate


@pytest.mark.parametrize("slots", [None, 140])
def test_one_stage_is_the_event_simulation_of_an_instance(slots):
    workload = poisson_workload(200, 8_000, Lengths(512), Lengths(64, 0.5), seed=1)
    step = AffineStep(6.6e-3, 1.2e-5, 2e-8)
    served = simulate(workload, InstanceSettings("decode", step, max_batch=slots))
    found = simulate_pipelined_decode(workload, [lambda n, context: step(0, 0, n, context)], slots=slots)
    assert found == pytest.approx(served.completions, rel=1e-12)


def test_two_micro_batches_follow_each_other_through_the_stages():
    # the second of two requests that come at once enters stage 1 when the first has left it
    workload = Workload([0.0, 0.0], [4, 4], [2, 2])
    assert simulate_pipelined_decode(workload, [lambda *_: 1.0, lambda *_: 2.0]) == pytest.approx([3.0, 5.0])


def test_a_third_request_joins_the_smallest_micro_batch_at_its_next_pass():
    workload = Workload([0.0, 0.0, 0.5], [4, 4, 4], [3, 2, 2])
    done = simulate_pipelined_decode(workload, [lambda *_: 1.0, lambda *_: 1.0])
    assert done == pytest.approx([4.0, 3.0, 4.0])


def test_requests_wait_for_a_slot_in_the_order_of_arrival():
    workload = Workload([0.0, 0.1, 0.2], [4, 4, 4], [2, 2, 2])
    done = simulate_pipelined_decode(workload, [lambda *_: 1.0], slots=1)
    assert done == pytest.approx([1.0, 2.0, 3.0])


def test_a_single_token_needs_no_pass():
    assert simulate_pipelined_decode(Workload([0.3], [4], [1]), [lambda *_: 1.0]) == pytest.approx([0.3])


def test_contexts_are_counted():
    seen = []
    simulate_pipelined_decode(Workload([0.0], [10], [3]), [lambda n, context: seen.append((n, context)) or 1.0])
    assert seen == [(1, 11), (1, 12)]


def test_every_request_is_completed_after_its_arrival():
    workload = poisson_workload(50, 2_000, Lengths(100, 1.0), Lengths(20, 1.0), seed=2)
    done = simulate_pipelined_decode(workload, [lambda n, _: 1e-3 + 1e-5 * n] * 3, 1e-4, slots=30)
    steps = workload.output_tokens - 1
    assert np.all(done - workload.arrivals >= steps * 3.0e-3)
