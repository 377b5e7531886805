import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.parallelism import (
    CROSSOVER_LOAD,
    CROSSOVER_LOAD_TWO,
    CROSSOVER_RATE,
    PIPELINE_MEAN_TTFT,
    STAGES_CROSSOVER_RATE,
    STAGES_MEAN_TTFT,
    TENSOR_MEAN_TTFT,
    crossover,
    crossover_rate,
    crossovers,
    even_stages,
    pipeline_mean,
    pipeline_quantile,
    stages_crossover,
    stages_crossover_rate,
    tensor_quantile,
)
from formulas.queueing import md1

R, D, K, N = (v.symbol for v in (crossovers.RATE, crossovers.SERVICE, crossovers.SPEEDUP, crossovers.GPUS))
levels = st.sampled_from([None, 0.5, 0.9, 0.99])


def pipeline_gain(rate, tensor, stages, level, hop=0.0):
    """How much sooner the pipeline answers."""
    if level is None:
        return TENSOR_MEAN_TTFT(rate=rate, service_time=tensor, speedup=1.0) - pipeline_mean(rate, stages, hop)
    return tensor_quantile(level, rate, tensor, 1.0) - pipeline_quantile(level, rate, stages, hop)


def test_course_figures(course):
    figures = course["crossover"]
    rates = crossover_rate(figures["service_s"], np.array(figures["speedup"]), 2)
    np.testing.assert_allclose(rates, figures["rate"], rtol=1e-6)
    loads = course["crossover_load"]
    np.testing.assert_allclose(CROSSOVER_LOAD_TWO(speedup=np.array(loads["speedup"])), loads["load"], atol=6e-4)


@pytest.mark.parametrize("speedup", ["1.5", "1.9"])
def test_reference_read_from_a_grid(parallelism_reference, speedup):
    expected = parallelism_reference["crossover"][speedup]
    for name, level in (("mean", None), ("P90", 0.9), ("P99", 0.99)):
        assert crossover_rate(1.0, float(speedup), 2, level) == pytest.approx(expected[name], abs=0.01)


def test_solving_finds_the_closed_form_for_two():
    x = sp.Symbol("x", positive=True)
    unit = {D: 1, R: x, N: 2}
    difference = (PIPELINE_MEAN_TTFT.expression - TENSOR_MEAN_TTFT.expression).subs(unit)
    roots = sp.solve(difference, x)
    assert len(roots) == 2
    at = {K: sp.Rational(17, 10)}
    smaller = min(roots, key=lambda root: root.subs(at).evalf())
    assert sp.simplify(smaller - CROSSOVER_LOAD_TWO.expression) == 0


def test_solving_finds_the_closed_form_for_n():
    x = sp.Symbol("x", positive=True)
    for n in (3, 4, 8):
        difference = (PIPELINE_MEAN_TTFT.expression - TENSOR_MEAN_TTFT.expression).subs({D: 1, R: x, N: n})
        roots = sp.solve(sp.numer(sp.together(difference)), x)
        at = {K: sp.Rational(3, 2)}
        smaller = min(roots, key=lambda root: root.subs(at).evalf())
        ours = CROSSOVER_LOAD.expression.subs(N, n)
        for speedup in (sp.Rational(5, 4), sp.Rational(3, 2), sp.Rational(29, 10)):
            assert abs(sp.N((smaller - ours).subs(K, speedup), 30)) < 1e-25


def test_the_general_form_covers_the_others():
    tensor, bottleneck, latency = (
        v.symbol for v in (crossovers.TENSOR_TIME, crossovers.BOTTLENECK, crossovers.LATENCY)
    )
    even = STAGES_CROSSOVER_RATE.expression.subs({tensor: D / K, bottleneck: D / N, latency: D})
    for k, n in ((1.3, 2), (3.5, 4), (6, 16)):
        at = {K: sp.Rational(k), N: n, D: sp.Rational(1, 7)}
        assert abs(sp.N((even - CROSSOVER_RATE.expression).subs(at), 30)) < 1e-24
    assert sp.simplify(CROSSOVER_LOAD.expression.subs(N, 2) - CROSSOVER_LOAD_TWO.expression).subs(
        K, sp.Rational(8, 5)
    ).evalf(30) == pytest.approx(0, abs=1e-24)


def test_derivations_end_at_the_formula_and_their_quadratics_at_zero():
    x = crossovers.LOAD.symbol
    for form, at in ((CROSSOVER_LOAD_TWO, {K: 1.7}), (CROSSOVER_LOAD, {K: 2.6, N: 4}), (CROSSOVER_RATE, None)):
        assert form.steps[-1].equation.rhs == form.expression
        if at:
            root = form.expression.subs(at)
            assert abs(form.steps[1].equation.lhs.subs({**at, x: root})) < 1e-11
    at = {crossovers.TENSOR_TIME.symbol: 0.06, crossovers.BOTTLENECK.symbol: 0.05, crossovers.LATENCY.symbol: 0.1}
    root = STAGES_CROSSOVER_RATE.expression.subs(at)
    assert abs(STAGES_CROSSOVER_RATE.steps[1].equation.lhs.subs({**at, R: root})) < 1e-12
    assert STAGES_CROSSOVER_RATE.steps[-1].equation.rhs == STAGES_CROSSOVER_RATE.expression


@given(speedup=st.floats(1.02, 15.9), gpus=st.sampled_from([2, 4, 8, 16]), service=st.floats(1e-3, 5), level=levels)
@settings(deadline=None)
def test_the_crossover_separates_the_winners(speedup, gpus, service, level):
    assume(speedup < 0.995 * gpus)
    rate = crossover_rate(service, speedup, gpus, level)
    assert 0 < rate < speedup / service
    if level is not None:
        assert rate > (1 - level) * speedup / service  # nobody counted waits below
    tensor, stages = service / speedup, even_stages(service, gpus)
    assert pipeline_gain(0.999 * rate, tensor, stages, level) < 0
    above = rate + 0.01 * (speedup / service - rate)
    assert pipeline_gain(above, tensor, stages, level) > 0
    assert abs(pipeline_gain(rate, tensor, stages, level)) < 1e-6 * service


@given(
    speedup=st.floats(0.5, 6), first=st.floats(0.05, 1), second=st.floats(0.05, 1), hop=st.floats(0, 0.5), level=levels
)
@settings(deadline=None, max_examples=60)
def test_there_is_one_crossover_at_most(speedup, first, second, hop, level):
    """Signs on a fine grid change where the answer says, and nowhere else, whatever the stages."""
    stages, tensor = [first, second], (first + second) / speedup
    found = stages_crossover(tensor, stages, hop, level)
    limit = min(found.tensor_capacity, found.pipeline_capacity)
    rates = limit * np.linspace(0.0005, 0.9995, 1000)
    gain = pipeline_gain(rates, tensor, stages, level, hop)
    decided = np.abs(gain) > 1e-9
    signs = np.sign(gain[decided])
    changes = np.flatnonzero(np.diff(signs))
    assert len(changes) <= 1
    expected = [found.winner_at(float(rate)) for rate in rates[decided]]
    assert [("tensor" if sign < 0 else "pipeline") for sign in signs] == expected


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9, 0.99, 0.999])
def test_the_percentile_of_the_wait_is_convex_in_the_service_time(level):
    """Why there is one crossover: at unit rate, second differences are never negative."""
    for low, high in ((1e-3, 0.2), (0.2, 0.6), (0.6, 0.95)):
        service = np.linspace(low, high, 2001)
        wait = service * md1.wait_quantile(level, service)
        assert np.diff(wait, 2).min() >= -1e-10 * wait.max()
        assert np.diff(wait, 2).max() > 0 or wait.max() == 0


@pytest.mark.parametrize("level", [None, 0.9, 0.99])
@pytest.mark.parametrize("speedup", [0.9, 1.0, 4.0, 5.0])
def test_without_a_crossover_one_wins_everywhere(level, speedup):
    winner = "pipeline" if speedup <= 1 else "tensor"
    found = crossover(0.1, speedup, 4, level)
    assert found.rate is None
    assert found.winner == winner
    assert ("Tensor" in found.reason) == (winner == "tensor")
    assert crossover_rate(0.1, speedup, 4, level) is None
    rates = 0.999 * min(found.tensor_capacity, found.pipeline_capacity) * np.linspace(0.2, 1, 50)
    gain = pipeline_gain(rates, 0.1 / speedup, even_stages(0.1, 4), level)
    assert np.all(gain >= -1e-12) if winner == "pipeline" else np.all(gain <= 1e-12)
    assert found.winner_at(1.0) == winner
    assert found.winner_at(1.001 * max(found.tensor_capacity, found.pipeline_capacity)) is None


def test_closed_form_says_who_wins_where_it_has_no_value():
    with pytest.raises(DomainError, match=r"^Tensor parallel wins at every rate"):
        CROSSOVER_LOAD(speedup=4, gpus=4)
    with pytest.raises(DomainError, match=r"^The pipeline wins at every rate"):
        CROSSOVER_LOAD_TWO(speedup=1)


def test_hops_move_the_crossover_up_and_can_make_tensor_win_first():
    none, some = (stages_crossover(0.0625, [0.05, 0.05], hop).rate for hop in (0.0, 0.01))
    assert none == pytest.approx(CROSSOVER_RATE(service_time=0.1, speedup=1.6, gpus=2), rel=1e-12)
    assert none < some
    assert stages_crossover(0.101, [0.05, 0.05]).winner == "pipeline"
    assert stages_crossover(0.101, [0.05, 0.05], hop=0.002).winner is None


def test_crossover_at_the_edge_of_its_domain():
    near = crossover(1.0, 2 - 4e-16, 2, 0.99)
    assert near.winner is None
    assert near.rate == pytest.approx(2.0, abs=1e-6)
    assert crossover(1.0, 1 + 1e-9, 2).rate == pytest.approx(8e-9 / 3, rel=1e-5)
    assert crossover(1.0, 1 + 1e-9, 2, 0.9).rate == pytest.approx(0.1, rel=1e-7)


def test_winner_on_both_sides_and_on_the_crossover():
    found = crossover(0.1, 1.7, 2)
    assert [found.winner_at(found.rate * x) for x in (0.99, 1.0, 1.01)] == ["tensor", None, "pipeline"]
    assert found.winner_at(18.0) == "pipeline"  # tensor is unstable from 17
    assert "mean" in found.reason
    assert "P99" in crossover(0.1, 1.7, 2, 0.99).reason


def test_arrays_equal_numbers():
    speedups = np.array([[0.9, 1.2, 1.7], [1.99, 2.0, 3.0]])
    for level in (None, 0.9):
        many = crossover_rate(0.1, speedups, 2, level)
        assert many.shape == (2, 3)
        for rate, speedup in zip(many.flat, speedups.flat, strict=True):
            one = crossover_rate(0.1, float(speedup), 2, level)
            assert np.isnan(rate) if one is None else rate == pytest.approx(one, rel=1e-11)
    assert stages_crossover_rate(0.06, 0.05, np.array([0.1, 0.2])).shape == (2,)


def test_level_outside_zero_and_one():
    with pytest.raises(DomainError, match="lies between"):
        crossover_rate(0.1, 1.5, 2, 1.0)


def test_mean_of_stages_is_what_is_compared():
    rate = stages_crossover_rate(0.0625, 0.055, 0.12)
    tensor = TENSOR_MEAN_TTFT(rate=rate, service_time=0.0625, speedup=1)
    assert tensor == pytest.approx(STAGES_MEAN_TTFT(rate=rate, bottleneck_time=0.055, latency=0.12), rel=1e-12)
