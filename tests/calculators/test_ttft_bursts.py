"""Bursts, convoys and batches through the ttft calculator: exact values, simulations, and what is said of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculators.__main__ import main
from calculators.inputs import InputsError, declared
from calculators.ttft import burst_wording, wording
from calculators.ttft.arrivals import BurstyArrivals, clumping, gaps_of, in_words, spells
from calculators.ttft.batching import batch_curves, batching, possible, saturation_tokens
from calculators.ttft.bursts import at_the_same_load, burst_on_idle, first_token_ms
from calculators.ttft.check import check
from calculators.ttft.compute import compute
from calculators.ttft.convoy import convoy, convoy_curve, elsewhere, goes_around, long_ms_of
from calculators.ttft.curves import curves_of
from calculators.ttft.effects import effects
from calculators.ttft.explanation import queue_formulas
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.methods import queue_of
from calculators.ttft.queues.bursty import thinned
from formulas.montecarlo.lindley import simulate_waits
from formulas.montecarlo.routers import simulate_routed

UNIT = {"service_ms": 1000.0, "ttft_slo_ms": 1e6}
"""Times in seconds are in units of the service time."""

SMALL = {"customers": 20_000}


def at(utilization, **changes):
    return TtftInputs(rate=utilization * changes.get("servers", 1), **UNIT, **SMALL, **changes)


def test_batches_of_one_and_spells_that_do_not_differ_are_poisson():
    poisson = compute(at(0.8))
    for same in (at(0.8, arrivals="batches", burst=1), at(0.8, arrivals="spells", busy_ratio=1)):
        found = compute(same)
        assert found.p99_ttft_ms == pytest.approx(poisson.p99_ttft_ms, rel=1e-7)
        assert found.mean_ttft_ms == pytest.approx(poisson.mean_ttft_ms, rel=1e-9)
        assert found.max_rate == pytest.approx(poisson.max_rate, rel=1e-6)


def test_reference_values_come_out_through_the_calculator():
    # Burke 1975: the first of a batch of 4 waits as in M/D/1 for services of 4; 1.5 are ahead of a prompt in its batch
    batches = compute(at(0.5, arrivals="batches", burst=4))
    assert batches.mean_wait_ms == pytest.approx(1e3 * (0.5 * 4 / (2 * 0.5) + 1.5), rel=1e-12)
    assert batches.p90_ttft_ms == pytest.approx(8693.14356, rel=1e-8)
    # calm 0.2 for 20 services, busy 1.4 for 10: at a mean rate of 0.6
    slow = compute(at(0.6, arrivals="spells", busy_ratio=7, busy_share=1 / 3, busy_spell_s=10))
    assert slow.mean_wait_ms == pytest.approx(5972.761028, rel=1e-8)
    assert slow.p99_ttft_ms == pytest.approx(33245.16715, rel=1e-8)


def test_who_may_go_anywhere_meets_fewer_of_its_own_batch():
    sizes = thinned(16, 4)
    assert sizes.shares.sum() == pytest.approx(1)
    assert sizes.lengths @ sizes.shares == pytest.approx(4 / (1 - 0.75**16))
    one, four = compute(at(0.7, arrivals="batches")), compute(at(0.7, arrivals="batches", servers=4))
    assert four.p99_ttft_ms < one.p99_ttft_ms
    assert compute(at(0.7, arrivals="spells", servers=4)).p99_ttft_ms == pytest.approx(
        compute(at(0.7, arrivals="spells")).p99_ttft_ms, rel=1e-9
    )


@pytest.mark.parametrize("servers", [1, 4])
@pytest.mark.parametrize("arrivals", ["batches", "spells"])
def test_the_simulation_agrees(servers, arrivals):
    spell = {"busy_spell_s": 5.0, "busy_ratio": 3.0}  # of five services: soon forgotten
    checked = check(replace(at(0.5, servers=servers, arrivals=arrivals, burst=4, **spell), customers=300_000))
    assert checked.agrees, [(row.label, row.exact_ms, row.low_ms, row.high_ms) for row in checked.rows]


def test_where_batches_are_rare_a_prompt_still_waits_for_its_own():
    for servers in (1, 3):
        queue = queue_of(at(0.5, arrivals="batches", burst=8, servers=servers))
        rare = 1e-7 * queue.capacity
        assert queue.idle_ms(None) == pytest.approx(queue.mean_ttft_ms(rare), rel=1e-5)
        levels = np.array([0.3, 0.6, 0.91])
        assert [queue.idle_ms(level) for level in levels] == pytest.approx(list(queue.ttft_ms(levels, rare)), rel=1e-5)


def test_a_target_that_a_batch_itself_misses_is_met_by_more_instances():
    inputs = TtftInputs(rate=10.0, service_ms=50.0, ttft_slo_ms=200.0, arrivals="batches", burst=16, **SMALL)
    found = compute(inputs)
    assert (found.verdict, found.max_rate) == ("misses", None)
    assert compute(replace(inputs, servers=found.instances)).verdict == "meets"
    assert compute(replace(inputs, servers=found.instances - 1)).verdict == "misses"
    assert f"**{found.instances} instances**" in wording.sentence(inputs, found)


@pytest.mark.parametrize("changes", [{}, {"servers": 3}])
@pytest.mark.parametrize("arrivals", ["batches", "spells"])
def test_curve_highest_rate_and_formulas_follow_the_arrivals(arrivals, changes):
    inputs = replace(at(0.6, arrivals=arrivals, burst=4, busy_spell_s=20.0, **changes), ttft_slo_ms=20_000.0)
    found, curves = compute(inputs), curves_of(inputs)
    assert np.interp(inputs.rate, curves.rate, curves.own_ttft_ms) == pytest.approx(found.target_ttft_ms, rel=0.01)
    assert queue_of(inputs).value_ms(0.9, found.max_rate) == pytest.approx(20_000.0, rel=1e-6)
    assert in_words(inputs) in wording.caption(inputs)
    shown = queue_formulas(inputs, found)
    assert all(np.isfinite(form.form(**form.values)) for form in shown)
    assert 1e3 * shown[-1].form(**shown[-1].values) == pytest.approx(found.mean_wait_ms, rel=1e-9)


@pytest.mark.parametrize(
    "changes",
    [{"servers": 4, "routing": "shared"}, {"prompt_cv": 1.0}, {"prompt_cv": 1.0, "order": "shortest"}],
)
def test_what_is_not_known_is_simulated_with_those_arrivals(changes):
    for arrivals in ("batches", "spells"):
        bursty = at(0.5, arrivals=arrivals, busy_spell_s=20.0, **changes)
        assert queue_of(bursty).kind == "simulation"
        assert compute(bursty, thorough=False).p99_ttft_ms > compute(at(0.5, **changes), thorough=False).p99_ttft_ms
    with pytest.raises(InputsError, match="arrivals to gamma"):
        compute(TtftInputs(servers=2, routing="random", batch_size=2, arrivals="spells"))


@pytest.mark.parametrize("arrivals", declared(BurstyArrivals)["arrivals"].options)
def test_random_gaps_have_the_rate(arrivals):
    inputs = TtftInputs(arrivals=arrivals, arrival_scv=2.0)
    gaps = gaps_of(inputs, 20.0, 200_000, np.random.default_rng(1))
    assert len(gaps) == 200_000
    assert gaps.mean() == pytest.approx(1 / 20, rel=0.05)
    counts = np.bincount((np.cumsum(gaps) / 20.0).astype(int))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(clumping(inputs, 20.0), rel=0.25)


def test_spells_shorter_than_a_prompt_by_far_are_poisson_or_refused():
    short = at(0.5, arrivals="spells", busy_spell_s=0.003)
    assert compute(short).p99_ttft_ms == compute(at(0.5)).p99_ttft_ms
    assert "taken for Poisson" in " ".join(compute(short).remarks)
    with pytest.raises(InputsError, match="busy_spell_s"):
        compute(replace(short, busy_ratio=1000.0, busy_share=0.001))
    kept = at(0.9, arrivals="spells", busy_spell_s=0.004)
    found, poisson = compute(kept), compute(at(0.9))
    assert found.p99_ttft_ms == pytest.approx(poisson.p99_ttft_ms, rel=0.02)
    assert found.p99_ttft_ms > poisson.p99_ttft_ms
    rare = at(1e-4, arrivals="spells", busy_spell_s=1.0, prompt_cv=1.0)
    assert len(gaps_of(rare, rare.rate, 1000, np.random.default_rng(1))) == 1000


def test_the_same_utilization_gives_several_times_the_tail():
    inputs = TtftInputs(rate=200.0, servers=4, routing="shared", prompt_cv=1.0)
    rows = at_the_same_load(inputs)
    assert len({round(row.utilization, 9) for row in rows}) == 1
    assert [row.times_poisson > 3 for row in rows] == [False, True, True, True]
    assert rows[0].p99_ttft_ms == compute(TtftInputs(rate=50.0)).p99_ttft_ms
    assert rows[2].p99_ttft_ms == compute(TtftInputs(rate=50.0, arrivals="batches")).p99_ttft_ms
    assert f"up to {max(row.times_poisson for row in rows):.3g} times" in burst_wording.on_same_load(inputs, rows)
    assert at_the_same_load(TtftInputs(rate=100.0)) == []
    assert "no steady state" not in burst_wording.on_same_load(inputs, rows)
    assert "steady state" in burst_wording.on_same_load(inputs, [])


@pytest.mark.parametrize("routing", ["random", "shared", "round_robin"])
def test_a_burst_is_what_the_routers_make_of_it(routing):
    inputs = TtftInputs(service_ms=50.0, servers=3, routing=routing, burst=10, ttft_slo_ms=160.0)
    seeds = range(200) if routing == "random" else (1,)
    runs = np.array([simulate_routed(routing, np.zeros(10), np.full(10, 50.0), 3, seed) + 50.0 for seed in seeds])
    times = first_token_ms(inputs)
    found = burst_on_idle(inputs)
    if routing == "random":
        error = runs.std(axis=0) / len(runs) ** 0.5
        assert np.all(np.abs(runs.mean(axis=0) - times) <= 4 * error)
    else:
        assert np.sort(runs[0]) == pytest.approx(times)
    assert (found.first_ms, found.middle_ms, found.last_ms) == (times[0], times[4], times[9])
    assert found.mean_ms == pytest.approx(times.mean())
    assert "the last after" in burst_wording.on_burst(inputs, found)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 6), st.sampled_from(["random", "shared"]), st.sampled_from(["mean", 50.0, 90.0, 99.0]), st.floats(20, 900)
)  # fmt: skip
def test_the_largest_burst_keeps_the_target_and_one_more_does_not(servers, routing, target, limit):
    level = {"slo_statistic": "mean"} if target == "mean" else {"percentile": target}
    inputs = TtftInputs(service_ms=50.0, servers=servers, routing=routing, ttft_slo_ms=limit, **level)
    found = burst_on_idle(inputs).largest
    assert (found == 0) == (limit < 50.0)

    def statistic(burst):  # of a prompt taken at random; of those at random by their law where bursts are rare
        if routing == "random" and servers > 1:
            queue = queue_of(replace(inputs, arrivals="batches", burst=burst))
            return queue.idle_ms(None if target == "mean" else target / 100)
        times = first_token_ms(replace(inputs, burst=burst))
        return times.mean() if target == "mean" else np.quantile(times, target / 100, method="inverted_cdf")

    if found:
        assert statistic(found) <= limit * (1 + 1e-9)
        assert statistic(found + 1) > limit * (1 - 1e-9)


def test_a_burst_is_forgotten_after_its_busy_period():
    inputs = TtftInputs(rate=10.0, service_ms=50.0, burst=8)
    generator, ends = np.random.default_rng(1), []
    for _ in range(2000):
        work, now, arrivals = 8 * 0.05, 0.0, iter(np.cumsum(generator.exponential(0.1, 400)))
        arrival = next(arrivals)
        while now + work > arrival:
            work, now, arrival = work - (arrival - now) + 0.05, arrival, next(arrivals)
        ends.append(now + work)
    found = burst_on_idle(inputs).idle_again_ms / 1e3
    assert found == pytest.approx(0.8)  # 8 services over what is left of the capacity
    assert abs(np.mean(ends) - found) <= 4 * np.std(ends) / len(ends) ** 0.5
    never = burst_on_idle(replace(inputs, rate=20.0))
    assert never.idle_again_ms is None
    assert "never idle again" in burst_wording.on_burst(inputs, never)


def _drawn(curve, since):
    return np.interp(1e3 * since, curve.since_ms, curve.extra_ms) / 1e3


def test_a_long_prompt_delays_those_behind_it_as_the_same_arrivals_without_it_show():
    inputs = TtftInputs(rate=14.0, service_ms=50.0, prompt_tokens=500, long_tokens=10_000)
    found, generator, runs = convoy(inputs), np.random.default_rng(1), []
    assert (found.long_ms, found.utilization) == (1000.0, pytest.approx(0.7))
    warm, behind = 100, 400
    for _ in range(1500):
        gaps = generator.exponential(1 / 14.0, warm + behind)
        services = np.full(warm + behind, 0.05)
        services[warm] = 0.0  # in its place comes the long one, or nobody
        before = simulate_waits(gaps, services)
        services[warm] = 1.0
        extra = simulate_waits(gaps, services) - before
        runs.append((np.cumsum(gaps[warm:-1]), extra[warm + 1 :]))
    totals = np.array([extra.sum() for _, extra in runs])
    expected = found.delayed * found.extra_ms / 1e3
    assert abs(totals.mean() - expected) <= 4 * totals.std() / len(runs) ** 0.5
    curve = convoy_curve(found)
    off = np.array([((extra - _drawn(curve, since)) * (since < 1)).sum() for since, extra in runs])
    assert abs(off.mean()) <= 4 * off.std() / len(runs) ** 0.5  # while the long prompt runs, the curve is exact
    later = np.array([((extra - _drawn(curve, since)) * (since > 2)).sum() for since, extra in runs])
    assert later.mean() > 0  # and then a lower bound
    text = burst_wording.on_convoy(inputs, found)
    assert f"delays about {round(found.delayed)} others" in text
    assert convoy(replace(inputs, rate=21.0)) is None
    assert burst_wording.on_convoy(inputs, None) == burst_wording.NO_STEADY_STATE


def test_a_router_that_looks_goes_around_the_long_prompt():
    inputs = TtftInputs(rate=60.0, service_ms=50.0, servers=4, prompt_tokens=500, long_tokens=10_000, routing="shared")
    assert goes_around(inputs)
    assert not goes_around(replace(inputs, routing="round_robin"))
    found = elsewhere(replace(inputs, rate=50.0))
    assert found.utilization == pytest.approx(2.5 / 3)
    assert found.wait_ms == queue_of(replace(inputs, servers=3)).mean_wait_ms(50.0)
    assert found.wait_ms > found.ordinary_wait_ms
    assert "goes around it" in burst_wording.on_elsewhere(inputs, found)
    piled = elsewhere(replace(inputs, rate=70.0))
    assert (piled.wait_ms, piled.piled_up) == (None, pytest.approx(10.0))
    assert "About 10 prompts pile up" in burst_wording.on_elsewhere(inputs, piled)
    assert elsewhere(replace(inputs, rate=80.0)) is None
    assert long_ms_of(inputs) == 1000.0
    assert long_ms_of(TtftInputs(long_tokens=1024)) == compute(TtftInputs(prompt_tokens=1024)).service_ms


def test_short_prompts_are_batched_up_to_the_saturation_length():
    short = TtftInputs(rate=100.0, prompt_tokens=64)
    saturation = saturation_tokens(short)
    service = compute(replace(short, prompt_tokens=saturation)).service
    assert service.compute_ms >= service.memory_ms
    below = compute(replace(short, prompt_tokens=saturation - 1)).service
    assert below.compute_ms < below.memory_ms
    found = batching(short)
    assert found.fill == saturation // 64
    assert found.pair_saving_ms > 0
    assert "**Batching helps.**" in burst_wording.on_batching(short, found)
    means = {row.most: row.mean_ttft_ms for row in found.rows}
    assert means[found.fill] < means[1]
    assert means[4] == compute(replace(short, batch_size=4, **SMALL)).mean_ttft_ms
    alone, filled, larger = batch_curves(short, found)
    assert (alone.most, filled.most, larger.most) == (1, found.fill, 4 * found.fill)
    assert np.nanmax(filled.rate) > 2 * np.nanmax(alone.rate)


def test_longer_prompts_only_wait_for_each_other():
    long = TtftInputs(rate=20.0, prompt_tokens=2048)
    found = batching(long)
    assert (found.fill, found.pair_saving_ms < 0) == (1, True)
    assert found.pair_saving_ms == pytest.approx(1.5 * found.alone_ms - found.pair_ms)
    means = [row.mean_ttft_ms for row in found.rows if row.mean_ttft_ms is not None]
    assert means == sorted(means)
    assert "only makes everyone wait" in burst_wording.on_batching(long, found)
    assert not possible(TtftInputs(service_ms=50.0))


def test_the_effects_take_the_arrivals_that_are_chosen_and_leave_no_row_empty():
    inputs = TtftInputs(rate=150.0, servers=4, routing="shared", arrivals="batches", burst=8, **SMALL)
    rows = {row.traffic: row for row in effects(inputs, slow=False)}
    assert (
        rows["bursts alone: batches of 8 at Poisson times"].p99_ttft_ms
        == compute(replace(inputs, routing="random")).p99_ttft_ms
    )
    assert rows["bursts behind one shared queue"].simulated
    assert all(row.p99_ttft_ms is not None for row in rows.values())


def test_spells_and_batches_on_the_command_line(capsys):
    words = ["ttft", "--rate", "10", "--service-ms", "50", "--arrivals", "spells", "--busy-ratio", "7", "--json"]
    assert main([*words, "--burst", "12", "--long-tokens", "1024"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "MMPP/D/1" in report["results"]["method"]
    assert report["results"]["approximation_error"].endswith(".")
    assert report["results"]["burst"]["last_ms"] == 600
    assert report["results"]["long_prompt"]["long_ms"] == 100
    assert "arrivals=spells" in report["link"]
    process = spells(TtftInputs(busy_ratio=7.0), 10.0)
    assert process.second_rate / process.first_rate == pytest.approx(7)
    assert main(["ttft", "--arrivals", "poisson"]) == 2
    assert 'arrivals = "poisson"' in capsys.readouterr().err
