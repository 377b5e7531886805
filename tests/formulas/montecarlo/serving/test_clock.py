import numpy as np
import pytest

from formulas.montecarlo.serving import AffineStep, LargestOf
from formulas.montecarlo.serving.clock import Run, clock_of

POINTS = [(512, 0, 0, 0), (0, 0, 32, 32 * 700), (512, 0, 32, 32 * 700), (128, 384, 7, 5000), (2048, 0, 600, 10**6)]


@pytest.mark.parametrize("point", POINTS)
def test_fast_form_is_the_step_time(llama, llama_exactly, point):
    assert llama(*point) == pytest.approx(llama_exactly(*point), rel=1e-11)


@pytest.mark.parametrize(("prompt", "expected_ms"), [(0, 7.6960), (128, 7.6960), (512, 14.8954), (2048, 55.4837)])
def test_steps_of_the_lecture(llama, prompt, expected_ms):
    """Lecture 2.2: 32 sequences at context 700, and a prompt in the same step."""
    assert llama(prompt, 0, 32, 32 * 700) * 1e3 == pytest.approx(expected_ms, rel=1e-4)


def test_shares_are_read_off_exactly():
    step = AffineStep(5e-3, 2e-5, 5e-8, 3e-5, 9e-10, 4e-8)
    found = AffineStep.of(step)
    for name in ("base_s", "sequence_s", "context_token_s", "prompt_token_s", "pair_s", "cached_token_s"):
        assert getattr(found, name) == pytest.approx(getattr(step, name), rel=1e-9)


def test_a_maximum_is_not_affine(llama):
    with pytest.raises(ValueError, match="not affine"):
        AffineStep.of(llama)


@pytest.mark.parametrize("batch", [1, 3, 200, 400])
def test_many_steps_at_once_are_the_steps_one_by_one(batch):
    """Memory traffic overtakes arithmetic on the way, except for the smallest batch."""
    steps = LargestOf((AffineStep(1e-3, 2.5e-5, 1e-9), AffineStep(2e-3, 1e-6, 5e-8)))
    context, left, together = batch * 300, 500, []
    while left:
        run = steps.decode_run(batch, context, left)
        together += [run.first_s + k * run.growth_s for k in range(run.steps)]
        assert run.duration() == pytest.approx(sum(together[-run.steps :]), rel=1e-12)
        context, left = context + run.steps * batch, left - run.steps
    np.testing.assert_allclose(together, [steps(0, 0, batch, batch * (300 + k)) for k in range(500)], rtol=1e-12)


@pytest.mark.parametrize("growth", [0.0, 1e-3, 0.7])
def test_a_run_is_cut_at_the_first_end_of_a_step_that_is_late_enough(growth):
    run = Run(0.3, growth, 40)
    ends = [run._replace(steps=k).duration() for k in range(1, 41)]
    for elapsed in [*np.linspace(1e-3, ends[-1], 77), *ends]:
        assert run.cut(elapsed).steps == 1 + sum(end < elapsed for end in ends)


def test_a_callable_that_knows_runs_is_taken_at_its_word(llama):
    assert clock_of(llama) is llama
    assert clock_of(AffineStep(1.0)).decode_run(2, 9, 5) == Run(1.0, 0.0, 5)
    assert clock_of(lambda *_: 2.0).decode_run(2, 9, 5) == Run(2.0, 0.0, 1)
