import numpy as np
import pytest

from formulas.closed_form import DomainError
from formulas.montecarlo.serving import Served, Targets, simulated_goodput


def served_at(rate):
    """As if one request in a hundred were late for each request per second."""
    late = np.arange(100) < rate
    zeros, ones = np.zeros(100), np.ones(100, dtype=np.int64)
    return Served(zeros, np.where(late, 2.0, 0.5), np.where(late, 2.0, 0.5), ones, ones, ())


@pytest.mark.parametrize(("attainment", "rate"), [(0.9, 10.0), (0.5, 50.0)])
def test_is_where_the_attainment_is_met_no_more(attainment, rate):
    found = simulated_goodput(served_at, Targets(1.0, 1.0, attainment), 1.0, 99.0, 1e-6)
    assert found == pytest.approx(rate, rel=1e-5)


@pytest.mark.parametrize(
    ("low", "high", "sentence"), [(20.0, 90.0, "missed already at 20"), (1.0, 5.0, "still met at 5")]
)
def test_a_bracket_must_hold_it(low, high, sentence):
    with pytest.raises(DomainError, match=sentence):
        simulated_goodput(served_at, Targets(1.0, 1.0, 0.9), low, high)
