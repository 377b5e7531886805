import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.montecarlo.tandem import simulate_tandem
from formulas.parallelism import (
    PIPELINE_MEAN_TTFT,
    even_stages,
    pipeline_capacity,
    pipeline_mean,
    pipeline_quantile,
    replicas_quantile,
    tensor_quantile,
)
from formulas.queueing import md1


def test_one_accelerator_is_md1():
    exact = 0.05 * (1 + md1.wait_quantile(0.99, 0.8))
    for quantile in (
        tensor_quantile(0.99, 16, 0.05, 1.0),
        replicas_quantile(0.99, 16, 0.05, 1),
        pipeline_quantile(0.99, 16, [0.05]),
    ):
        assert quantile == pytest.approx(exact, rel=1e-14)


def test_reference_values_in_their_own_units(md1_reference):
    wait = float(md1_reference["0.8"]["wait_quantiles"]["0.99"])
    assert tensor_quantile(0.99, 1.2, 1.0, 1.5) == pytest.approx((1 + wait) / 1.5, rel=1e-9)
    assert pipeline_quantile(0.99, 3.2, even_stages(1.0, 4)) == pytest.approx(1 + wait / 4, rel=1e-9)
    assert replicas_quantile(0.99, 3.2, 1.0, 4) == pytest.approx(1 + wait, rel=1e-9)


@pytest.mark.parametrize("order", [[0.1, 0.4, 0.25], [0.4, 0.1, 0.25], [0.1, 0.25, 0.4]])
def test_order_of_the_stages_does_not_matter_path_by_path(order):
    """Friedman: the time in the pipeline is the wait for the slowest stage, and the sum of all."""
    gaps = np.random.default_rng(8).exponential(0.5, 5_000)
    one = simulate_tandem(gaps, [[0.4]]) - 0.4
    np.testing.assert_allclose(simulate_tandem(gaps, np.array(order)[:, None]), one + sum(order), atol=1e-9)
    assert pipeline_quantile(0.9, 2, order) == pytest.approx(0.75 + 0.4 * md1.wait_quantile(0.9, 0.8), rel=1e-13)


@given(
    rate=st.floats(0.01, 0.99), more=st.floats(1e-3, 0.01), gpus=st.integers(1, 16),
    level=st.sampled_from([0.5, 0.9, 0.99]),
)  # fmt: skip
def test_grows_with_the_rate_and_never_below_the_unloaded_time(rate, more, gpus, level):
    rates = np.minimum([rate, rate + more], 0.999)
    for quantile, least in (
        (tensor_quantile(level, rates * gpus, 1.0, gpus), 1 / gpus),
        (pipeline_quantile(level, rates * gpus, even_stages(1.0, gpus), hop=0.01), 1 + 0.01 * (gpus - 1)),
        (replicas_quantile(level, rates * gpus, 1.0, gpus), 1.0),
    ):
        assert least * (1 - 1e-12) <= quantile[0] <= quantile[1]


def test_uneven_stages_and_hops():
    stages, hop = [0.04, 0.06, 0.05], 0.002
    assert pipeline_capacity(stages) == pytest.approx(1 / 0.06)
    assert pipeline_mean(8, stages, hop) == pytest.approx(0.154 + md1.MEAN_WAIT(rate=8, service_time=0.06), rel=1e-13)
    wait = 0.06 * md1.wait_quantile(0.99, 0.48)
    assert pipeline_quantile(0.99, 8, stages, hop) == pytest.approx(0.154 + wait, rel=1e-13)
    even = PIPELINE_MEAN_TTFT(rate=8, service_time=0.2, gpus=4)
    assert pipeline_mean(8, even_stages(0.2, 4)) == pytest.approx(even, rel=1e-13)


def test_replicas_of_a_pipeline_share_the_rate():
    stages = even_stages(0.2, 2)
    assert pipeline_mean(12, stages, replicas=3) == pytest.approx(pipeline_mean(4, stages), rel=1e-14)
    assert pipeline_quantile(0.9, 12, stages, replicas=3) == pipeline_quantile(0.9, 4, stages)
    assert pipeline_capacity(stages, replicas=3) == pytest.approx(30)


def test_arrays_and_numbers():
    rates, levels = np.array([4.0, 8.0, 25.0]), np.array([[0.5], [0.99]])
    many = pipeline_quantile(levels, rates, [0.03, 0.05])
    assert many.shape == (2, 3)
    assert np.isnan(many[:, 2]).all()
    assert many[1, 1] == pytest.approx(pipeline_quantile(0.99, 8, [0.03, 0.05]), rel=1e-14)
    several = pipeline_mean(4.0, np.array([[0.03, 0.05], [0.04, 0.04]]))
    assert several[1] == pytest.approx(pipeline_mean(4.0, [0.04, 0.04]))
    assert type(pipeline_quantile(0.99, 8, [0.03, 0.05])) is float
    assert type(tensor_quantile(0.99, 8, 0.05, 1.5)) is float


def test_outside_the_domain():
    with pytest.raises(DomainError, match="no steady state"):
        tensor_quantile(0.99, 20, 0.1, 1.6)
    with pytest.raises(DomainError, match="lies between"):
        pipeline_quantile(1.0, 1, [0.1])
    with pytest.raises(ValueError, match="at least one stage"):
        pipeline_mean(1.0, [])
