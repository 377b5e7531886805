"""What is known exactly, or was found by another program, beside the event simulation."""

import numpy as np
import pytest

from formulas.montecarlo.agreement import long_enough
from formulas.montecarlo.confidence import mean_interval
from formulas.montecarlo.run_length import RELAXATION_CUSTOMERS
from formulas.montecarlo.serving import (
    AffineStep,
    InstanceSettings,
    Lengths,
    Targets,
    poisson_workload,
    simulate,
    simulated_goodput,
)
from formulas.queueing import md1


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_prefills_are_md1(llama, load):
    service = llama(512, 0, 0, 0)
    workload = poisson_workload(load / service, 80_000, Lengths(512), Lengths(64), 3)
    served = simulate(workload, InstanceSettings("prefill", llama)).part(4_000)
    assert long_enough(len(served), RELAXATION_CUSTOMERS(utilization=load))
    found = served.ttft_estimates((0.9, 0.99), 0.999)
    assert found["mean"].contains(md1.MEAN_TTFT(rate=load / service, service_time=service))
    for p in (0.9, 0.99):
        interval, exact = found[f"P{100 * p:g}"], service * (1 + md1.wait_quantile(p, load))
        assert interval.low * (1 - 1e-9) <= exact <= interval.high * (1 + 1e-9)


@pytest.mark.parametrize("rate", [100.0, 200.0, 300.0])
@pytest.mark.parametrize("cv", [0.0, 1.0])
def test_decode_is_the_product_form(rate, cv):
    """Mean time of a token (a + b) / (1 - R m b), whatever the lengths' law; an arrival waits half a step besides.

    The product form lets a request in at once, the steps only at their ends: a share 1/(2 m) of its time.
    """
    a, b = 6.6e-3, 2.66e-5
    workload = poisson_workload(rate, 60_000, Lengths(512), Lengths(64, cv), 4)
    served = simulate(workload, InstanceSettings("decode", AffineStep(a, b))).part(5_000, -2_000)
    more = float((served.output_tokens - 1).mean())
    exact = (a + b) / (1 - rate * more * b)
    interval = mean_interval((served.completions - served.first_tokens) / more, 0.999)
    assert interval.contains(exact * (1 + 1 / (2 * more)))
    assert interval.estimate == pytest.approx(exact, rel=0.015)


def test_goodputs_of_the_lecture(llama):
    """Lecture 3.2: 512 tokens in, 64 out, TTFT 100 ms, TPOT 15 ms, 90 %: exact, and by another event simulation."""
    targets = Targets(0.1, 0.015, 0.9)

    def goodput(kind, low, high):
        def served_at(rate):
            workload = poisson_workload(rate, 30_000, Lengths(512), Lengths(64), 1)
            return simulate(workload, InstanceSettings(kind, llama)).part(1_000, -500)

        return simulated_goodput(served_at, targets, low, high, 0.01)

    assert goodput("prefill", 55.0, 62.0) == pytest.approx(59.14, rel=0.02)
    assert goodput("prefill-first", 26.0, 32.0) == pytest.approx(29.7, rel=0.05)


def test_attainment_has_its_interval(llama):
    workload = poisson_workload(25.0, 30_000, Lengths(512), Lengths(64), 2)
    served = simulate(workload, InstanceSettings("prefill-first", llama))
    share = served.attainment(0.1, 0.015)
    assert share.low < share.estimate < share.high
    assert share.estimate == pytest.approx(served.meets(0.1, 0.015).mean(), abs=1e-3)
    assert served.attainment(np.inf, np.inf).estimate == 1.0
    assert list(served.tpot_estimates()) == ["mean", "P50", "P90", "P99"]
