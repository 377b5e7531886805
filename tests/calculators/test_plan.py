"""The plan: from a workload and a target to a deployment; each figure against its own parts and the simulation."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from calculators import outputs
from calculators.fleet import instances_for
from calculators.inputs import InputsError, part_of
from calculators.placement.cluster import PlacementInputs, SearchInputs
from calculators.placement.search import search
from calculators.plan import launch, wording
from calculators.plan.check import check
from calculators.plan.compute import PlanInputs, compute, deployments_of
from calculators.plan.costs import price_of
from calculators.plan.curves import fleet_curves
from calculators.scenario import ServiceLevels
from calculators.systems import ServingInputs
from formulas.closed_form import DomainError

ROOT = Path(__file__).parents[2]
EIGHT_B = PlanInputs(rate=200)
SEVENTY_B = PlanInputs(model="llama-3.1-70b", rate=100, ttft_slo_ms=1000, tpot_slo_ms=50)


@pytest.mark.parametrize("inputs", [EIGHT_B, SEVENTY_B], ids=lambda inputs: inputs.model)
def test_every_deployment_keeps_its_targets_with_the_accelerators_it_names(inputs):
    targets = part_of(ServiceLevels, inputs)
    for kind, plan in deployments_of(inputs).items():
        assert plan.latency.attainment(targets) >= inputs.attainment * (1 - 1e-6)
        sides = {plan.prefill, plan.decode} if kind != "disaggregated" else (plan.prefill, plan.decode)
        assert plan.gpus == sum(side.gpus for side in sides)
        assert all(side.gpus == side.instances * side.tp for side in sides)
        assert plan.can_take(targets) >= inputs.rate * (1 - 1e-3)
        for side in sides:
            assert side.instances >= instances_for(inputs.rate, side.goodput)


def test_the_recommendation_takes_the_fewest_accelerators_and_adds_up():
    result = compute(SEVENTY_B)
    best = result.recommendation
    assert best.gpus <= min(each.gpus for each in result.alternatives)
    price = price_of("h100-sxm", None)
    assert price == pytest.approx((1.99 * 5) ** 0.5)
    assert best.cost_per_hour == pytest.approx(best.gpus * price)
    an_hour = 3600 * SEVENTY_B.rate / 1e6
    for each in (best, *result.alternatives):
        spent = an_hour * (512 * each.cost_per_million_input_tokens + 64 * each.cost_per_million_output_tokens)
        assert spent == pytest.approx(each.cost_per_hour)
    assert result.headroom == pytest.approx(best.highest_rate / SEVENTY_B.rate - 1)
    assert result.disaggregate is False
    assert result.binding in ("ttft", "tpot", "memory", "link", "stability")


def test_a_typed_price_replaces_the_market():
    dear = compute(replace(EIGHT_B, price_per_hour=10))
    assert dear.recommendation.cost_per_hour == 10 * dear.recommendation.gpus


def test_the_plan_holds_in_the_simulation():
    for inputs in (EIGHT_B, replace(SEVENTY_B, rate=40)):
        checked = check(replace(inputs, customers=20_000))
        assert checked.holds
        assert checked.attainment >= checked.predicted_attainment - 0.03


@pytest.mark.parametrize(
    ("changes", "verdict", "said"),
    [
        ({"tpot_slo_ms": 1}, "too_slow_unloaded", "more replicas do not help"),
        ({"model": "deepseek-v3", "accelerator": "l4"}, "does_not_fit", "does not fit"),
        ({"most_gpus": 2}, "too_few_accelerators", "More than the 2 at hand"),
        ({}, "meets", "of the requests meet both targets"),
    ],
)
def test_three_kinds_of_no_stay_apart(changes, verdict, said):
    inputs = replace(EIGHT_B, **changes)
    result = compute(inputs)
    assert result.verdict == verdict
    assert said in wording.answer(inputs, result)
    if result.recommendation is None:
        with pytest.raises(DomainError):
            check(inputs)


def test_each_reason_has_its_number_and_turns_with_it():
    def sides(**changes):
        return {each.reason: each.side for each in compute(replace(EIGHT_B, **changes)).reasons}

    short = sides(prompt_tokens=64, rate=3, link="eth-10g")
    assert short["long prompts interfere"] == "against"
    assert short["low load"] == "against"
    assert short["small scale"] == "against"
    loose = sides(ttft_slo_ms=2000, link="eth-10g", rate=5)
    assert loose["tight first token"] == "against"
    assert loose["fast link"] == "against"
    assert sides(ttft_slo_ms=40)["tight first token"] == "for"


def test_the_fleet_grows_in_steps_with_the_rate():
    best = deployments_of(EIGHT_B)
    for curve in fleet_curves(best, EIGHT_B.rate):
        assert (curve.gpus[1:] >= curve.gpus[:-1]).all()
        assert curve.here == best[curve.kind].gpus


def test_launch_commands_carry_the_plan():
    for inputs in (SEVENTY_B, replace(EIGHT_B, ttft_slo_ms=40, tpot_slo_ms=8, rate=500)):
        result = compute(inputs)
        for plan in (result.recommendation, *result.alternatives):
            vllm, sglang, dynamo = (each.text for each in launch.launches(inputs, plan))
            assert f"--tensor-parallel-size {plan.prefill.tp}" in vllm
            assert ("NixlConnector" in vllm) == (plan.kind == "disaggregated")
            assert f"--tp-size {plan.decode.tp}" in sglang
            assert ("--disaggregation-mode prefill" in sglang) == (plan.kind == "disaggregated")
            assert f"replicas: {plan.decode.instances}" in dynamo
            if plan.chunk_tokens:
                assert f"--max-num-batched-tokens {plan.chunk_tokens}" in vllm


def test_the_command_line_gives_the_keys_of_the_answer():
    words = "--model llama-3.1-8b --accelerator h100-sxm --rate 50 --prompt-tokens 512 --output-tokens 64"
    command = [sys.executable, "-m", "calculators", "plan", *words.split(), "--json"]
    results = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)[
        "results"
    ]
    assert set(results) >= {"recommendation", "predicted", "binding", "headroom", "reasons", "alternatives"}
    assert set(results["recommendation"]) >= {
        "kind", "prefill", "decode", "gpus", "cost_per_hour", "cost_per_million_input_tokens",
        "cost_per_million_output_tokens",
    }  # fmt: skip


def test_the_result_is_a_table_for_people():
    table = outputs.as_table(compute(EIGHT_B))
    assert len(table["Figure"]) == len(table["Value"]) == len(table["Unit"])
    assert part_of(ServingInputs, EIGHT_B, tp=1).tp == 1


@pytest.mark.parametrize("harder", [{"prompt_cv": 1.5}, {"arrival_scv": 6.0}, {"prompt_cv": 1.0, "output_cv": 1.0}])
def test_harder_traffic_takes_no_fewer_accelerators_and_keeps_its_targets(harder):
    plain, hard = (deployments_of(replace(EIGHT_B, **changes)) for changes in ({}, harder))
    targets = part_of(ServiceLevels, EIGHT_B)
    assert hard.keys() == plain.keys()
    for kind, plan in hard.items():
        assert plan.gpus >= plain[kind].gpus
        assert plan.latency.attainment(targets) >= EIGHT_B.attainment * (1 - 1e-6)


def test_a_steadier_beat_takes_no_more_accelerators():
    plain, steady = (deployments_of(replace(EIGHT_B, rate=700, arrival_scv=scv)) for scv in (1, 0.2))
    assert all(steady[kind].gpus <= plain[kind].gpus for kind in plain)


def test_a_plan_for_uneven_traffic_holds_in_the_simulation():
    checked = check(replace(EIGHT_B, prompt_cv=1, output_cv=1, arrival_scv=4, customers=20_000))
    assert checked.holds


def test_bursts_beyond_the_forms_are_refused_with_what_is_allowed():
    with pytest.raises(InputsError, match=r"arrival_scv = 50: the forms of serving hold from 0\.1 to 10"):
        compute(replace(EIGHT_B, arrival_scv=50))


def test_each_side_can_have_its_own_chip_at_its_own_price():
    inputs = replace(EIGHT_B, ttft_slo_ms=40, tpot_slo_ms=8, rate=500, decode_accelerator="h200-sxm")
    best = deployments_of(replace(inputs, price_per_hour=3, decode_price_per_hour=0.5))
    apart = best["disaggregated"]
    assert (apart.prefill.accelerator, apart.decode.accelerator) == ("h100-sxm", "h200-sxm")
    result = compute(replace(inputs, price_per_hour=3, decode_price_per_hour=0.5))
    found = {each.kind: each for each in (result.recommendation, *result.alternatives)}
    assert found["disaggregated"].cost_per_hour == pytest.approx(3 * apart.prefill.gpus + 0.5 * apart.decode.gpus)
    assert result.recommendation.cost_per_hour == min(each.cost_per_hour for each in found.values())
    assert all(best[kind].prefill.accelerator == "h200-sxm" for kind in best if kind != "disaggregated")
    chips = next(each for each in result.reasons if each.reason == "chips of their own")
    assert (chips.side, chips.number) == ("for", pytest.approx(4.8 / 3.35, rel=0.01))
    launched = launch.launches(inputs, found["disaggregated"])[0].text
    assert "× h100-sxm each" in launched
    assert "× h200-sxm each" in launched


def test_a_check_tells_how_far_it_is_and_what_it_tells_may_stop_it():
    told = []
    check(replace(EIGHT_B, customers=10_000), told.append)
    assert told == sorted(told)
    assert 0.9 < told[-1] <= 1

    class StoppedError(Exception):
        pass

    def enough(share):
        if share > 0.3:
            raise StoppedError

    with pytest.raises(StoppedError):
        check(replace(EIGHT_B, customers=10_000), enough)


def test_what_fits_at_no_degree_names_the_pipeline_that_the_search_for_a_placement_finds():
    inputs = PlanInputs(model="llama-3.1-405b", rate=10, ttft_slo_ms=5000, tpot_slo_ms=200)
    result = compute(inputs)
    assert result.verdict == "does_not_fit"
    assert "A pipeline of **3 stages of 4 accelerators** holds it" in wording.answer(inputs, result)
    shared = {name: getattr(inputs, name) for name in ("model", "ttft_slo_ms", "tpot_slo_ms")}
    found = search(part_of(SearchInputs, PlacementInputs(**shared)))
    smallest = min(each.gpus for each in found.candidates if each.side == "decode" and each.allowed)
    assert smallest == result.pipeline.gpus
    assert compute(EIGHT_B).pipeline is None


def test_the_predicted_times_and_the_link_are_on_the_page():
    inputs = replace(EIGHT_B, ttft_slo_ms=40, tpot_slo_ms=8, rate=500)
    result = compute(inputs)
    table = wording.predicted_table(result)
    assert table["P90"] == [result.predicted.p90_ttft_ms, result.predicted.p90_tpot_ms]
    assert ("Gbit/s of each link" in wording.on_link(result)) == (result.recommendation.kind == "disaggregated")
    assert wording.predicted_table(compute(replace(EIGHT_B, tpot_slo_ms=1))) == {}


def test_in_bursts_one_instance_less_of_either_side_misses_the_targets():
    inputs = replace(EIGHT_B, rate=300, arrival_scv=6, ttft_slo_ms=60)
    apart = deployments_of(inputs)["disaggregated"]
    targets = part_of(ServiceLevels, inputs)
    counts = apart.prefill.instances, apart.decode.instances
    assert apart.gpus == 10
    for less in ((1, 0), (0, 1)):
        fewer = [count - each for count, each in zip(counts, less, strict=True)]
        times = replace(apart.system, prefill_instances=fewer[0], decode_instances=fewer[1]).at(inputs.rate)
        assert times is None or times.attainment(targets) < inputs.attainment
