import numpy as np
import pytest

from formulas.closed_form import DomainError
from formulas.experts import DISTINCT_EXPERTS


def test_course_figures(course):
    figures = course["experts"]
    distinct = DISTINCT_EXPERTS(
        experts=figures["experts"],
        experts_per_token=figures["experts_per_token"],
        tokens=np.array(figures["tokens"]),
    )
    np.testing.assert_allclose(distinct, figures["distinct"], rtol=1e-8)


def test_one_token_touches_its_own_and_many_touch_all():
    assert DISTINCT_EXPERTS(experts=256, experts_per_token=8, tokens=1) == pytest.approx(8)
    assert DISTINCT_EXPERTS(experts=256, experts_per_token=8, tokens=1e5) == pytest.approx(256)


def test_simulated_routing_agrees():
    rng = np.random.default_rng(3)
    routed = rng.random((4000, 11, 32)).argsort(axis=-1)[..., :4].reshape(4000, -1)
    touched = np.array([len(set(row)) for row in routed])
    exact = DISTINCT_EXPERTS(experts=32, experts_per_token=4, tokens=11)
    assert abs(touched.mean() - exact) < 4 * touched.std() / np.sqrt(len(touched))


def test_more_chosen_than_there_are():
    with pytest.raises(DomainError, match="more experts than there are"):
        DISTINCT_EXPERTS(experts=4, experts_per_token=8, tokens=1)
