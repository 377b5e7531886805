"""The distribution of prompt lengths that the inputs describe."""

from dataclasses import replace

import numpy as np
import pytest

from calculators.inputs import InputsError
from calculators.lengths import histogram_of, histogram_remarks, lengths_of, spread_of, text_of
from calculators.pools.compute import goodputs_of
from calculators.pools.inputs import PoolsInputs
from calculators.scenario import Workload
from calculators.simulation import prompt_lengths
from calculators.ttft.compute import compute
from calculators.ttft.inputs import TtftInputs
from formulas import traffic
from formulas.queueing.service import LognormalLengths

MEASURED = "100:5, 200:10, 400:12, 600:20, 1000:18, 1500:10, 2000:9, 3000:7, 5000:5, 8000:3, 16000:1"


@pytest.mark.parametrize(
    "text",
    [
        "100",
        "100:",
        ":3",
        "a:1",
        "100:1, 50:2",
        "100:0",
        "100:-1",
        "inf:1",
        "100:nan",
        "1e400:1",
        "100:1:2",
        "-5:1",
        "1e308:1",
        "5e-324:1",
        "1:1, 1.5:1",
        "100:1e20",
        "1_000:3",
    ],
)
def test_what_is_no_histogram_is_refused_with_what_to_write(text):
    with pytest.raises(InputsError, match=r"prompt_histogram.*512:30, 2048:50"):
        histogram_of(text)


def test_a_bucket_that_hardly_any_prompt_is_in_counts_as_empty():
    found = histogram_of("512:1, 1024:1e-320, 2048:1")
    assert found.shares == (1.0, 0.0, 1.0)


def test_a_histogram_is_scaled_to_the_prompt_length_and_says_so():
    given = Workload(prompt_tokens=500, prompt_histogram="1000:1")
    assert lengths_of(given).edges == (0.0, 1000.0)
    assert histogram_remarks(given) == ()
    longer = replace(given, prompt_tokens=1000)
    assert lengths_of(longer).mean == 1000
    assert "times 2" in histogram_remarks(longer)[0]
    assert spread_of(longer) == spread_of(given) == pytest.approx(3**-0.5)


def test_the_law_and_its_spread_play_no_part_beside_a_histogram():
    given = TtftInputs(prompt_histogram=MEASURED, rate=10.0)
    other = replace(given, prompt_cv=2.0, prompt_distribution="uniform")
    assert compute(other).p99_ttft_ms == compute(given).p99_ttft_ms


def test_a_histogram_of_a_lognormal_sample_answers_as_the_lognormal_law_does():
    drawn = np.ceil(LognormalLengths(1000.0, 1.0).draw(400_000, np.random.default_rng(1)))
    text = text_of(*traffic.histogram(drawn))
    shared = {"prompt_tokens": 1000, "rate": 20.0}
    law = compute(TtftInputs(prompt_cv=1.0, **shared))
    histogram = compute(TtftInputs(prompt_histogram=text, **shared))
    for name in ("mean_ttft_ms", "p50_ttft_ms", "p90_ttft_ms", "p99_ttft_ms"):
        assert getattr(histogram, name) == pytest.approx(getattr(law, name), rel=0.03)


def test_a_histogram_counts_every_request_and_keeps_mean_and_spread():
    drawn = np.ceil(np.random.default_rng(2).gamma(0.7, 2000.0, 50_000))
    edges, shares = traffic.histogram(drawn)
    assert shares.sum() == len(drawn)
    found = histogram_of(text_of(edges, shares))
    assert found.mean == pytest.approx(drawn.mean(), rel=0.02)
    assert found.cv == pytest.approx(drawn.std() / drawn.mean(), rel=0.03)
    assert found.cdf(edges[1:]) == pytest.approx(np.cumsum(shares) / len(drawn), abs=1e-5)


def test_simulated_prompts_have_the_lengths_of_the_histogram():
    given = Workload(prompt_tokens=1270, prompt_histogram=MEASURED)
    drawn = prompt_lengths(given).draw(200_000, np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(1270, rel=0.02)
    assert np.quantile(drawn, 0.65) == pytest.approx(1000, rel=0.02)


def test_pools_take_the_histogram():
    drawn = np.ceil(LognormalLengths(1000.0, 1.0).draw(400_000, np.random.default_rng(1)))
    text = text_of(*traffic.histogram(drawn))
    shared = {"prompt_tokens": 1000, "ttft_slo_ms": 300.0}
    equal, law, histogram = (
        goodputs_of(PoolsInputs(**shared, **spread)).prefill
        for spread in ({}, {"prompt_cv": 1.0}, {"prompt_histogram": text})
    )
    assert histogram == pytest.approx(law, rel=0.03)
    assert histogram < 0.9 * equal
