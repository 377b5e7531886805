"""The public traces, where they lie beside the project."""

import csv
import gzip
import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from calculators.traces import AZURE, MOONCAKE, read_trace
from formulas.traffic import (
    autocorrelation,
    correlation,
    fit_lognormal,
    gap_cv2,
    index_of_dispersion,
    mean_rate,
    rate_over_time,
)

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"


def data(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not there; it belongs in {DATA}")
    return path


def test_azure_conversations():
    path = data("azure_llm_conv.csv.gz")
    trace = read_trace(path)
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    assert trace.columns is AZURE
    assert (len(trace), trace.broken_rows, trace.notes) == (19_366, 0, ())
    assert trace.input_tokens.tolist() == [int(row["ContextTokens"]) for row in rows]
    assert trace.output_tokens.tolist() == [int(row["GeneratedTokens"]) for row in rows]
    first, last = (datetime.fromisoformat(row["TIMESTAMP"][:26]) for row in (rows[0], rows[-1]))
    assert trace.arrivals[-1] == pytest.approx((last - first).total_seconds(), abs=2e-6)
    assert mean_rate(trace.arrivals) == pytest.approx(5.53, abs=0.01)


def test_azure_conversations_are_no_poisson_stream():
    """Gaps nearly those of Poisson arrivals, counts ever more scattered in longer windows: the rate swings."""
    trace = read_trace(data("azure_llm_conv.csv.gz"))
    gaps = np.diff(trace.arrivals)
    assert gap_cv2(trace.arrivals) == pytest.approx(np.var(gaps) / np.mean(gaps) ** 2)
    assert gap_cv2(trace.arrivals) < 1.3
    index = index_of_dispersion(trace.arrivals, [1.0, 10.0, 100.0]).index
    assert index[0] < 2 < index[1] < 10 < index[2]
    assert np.all(autocorrelation(gaps, 5) > 4 / np.sqrt(len(gaps)))
    assert 1.3 < rate_over_time(trace.arrivals, 60.0).peak_over_mean < 2


def test_azure_lengths_are_no_lognormal_law():
    trace = read_trace(data("azure_llm_conv.csv.gz"))
    for lengths in (trace.input_tokens, trace.output_tokens):
        found = fit_lognormal(lengths, "likelihood")
        assert found.ks_distance > 0.1
        assert found.quantile_errors[0.99] > 0.5
    assert abs(correlation(trace.input_tokens, trace.output_tokens)) < 0.2


def test_mooncake():
    path = data("mooncake_synthetic.jsonl.gz")
    trace = read_trace(path)
    with gzip.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    assert trace.columns is MOONCAKE
    assert (len(trace), trace.broken_rows, trace.notes) == (3_993, 0, ())
    assert trace.input_tokens.tolist() == [row["input_length"] for row in rows]
    assert trace.output_tokens.tolist() == [row["output_length"] for row in rows]
    assert trace.arrivals[-1] == pytest.approx((rows[-1]["timestamp"] - rows[0]["timestamp"]) / 1e3)
    dispersion = index_of_dispersion(trace.arrivals, [1.0, 10.0])
    assert np.all(np.abs(dispersion.index - 1) < 0.5)  # nearly Poisson
