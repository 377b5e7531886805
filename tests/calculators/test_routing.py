"""Routers and bursts in plan, pools and placement: what sharing a queue saves, and that a simulation behind the router agrees."""

import json
from dataclasses import replace

import numpy as np
import pytest

from calculators.__main__ import main
from calculators.placement.cluster import PlacementInputs
from calculators.placement.compute import compute as place
from calculators.plan.check import check as check_plan
from calculators.plan.compute import PlanInputs, deployments_of
from calculators.plan.compute import compute as plan
from calculators.pools import wording
from calculators.pools.check import check as check_pools
from calculators.pools.compute import compute as size
from calculators.pools.inputs import PoolsInputs
from calculators.routers import AS_TAKEN, ROUTERS, scv_at_one
from calculators.simulation import apart_behind, clock_for, first_tokens_behind, workload_of
from calculators.systems import Disaggregated, ServingInputs, fewest_decode, fewest_prefill
from formulas.montecarlo.serving import InstanceSettings, simulate, simulate_disaggregated

SPREAD = {"prompt_cv": 1.0, "output_cv": 1.0}
MANY = PoolsInputs(target_rate=300.0, **SPREAD)


def test_every_router_has_its_words():
    options = PlanInputs.__dataclass_fields__["routing"].metadata["input"].options
    assert set(options) == set(ROUTERS) == set(AS_TAKEN)


def test_in_turn_over_one_or_at_random_over_many():
    assert scv_at_one(4.0, 1, in_turn=True) == scv_at_one(4.0, 1, in_turn=False) == 4
    assert scv_at_one(4.0, 1e9, in_turn=False) == pytest.approx(1)


def test_a_queue_that_prompts_share_takes_fewer_instances_than_turns_and_turns_fewer_than_chance():
    by_worth = ("shared", "shortest_queue", "round_robin", "random")
    found = [size(replace(MANY, routing=each)) for each in by_worth]
    counts, colocated = [each.prefill_instances for each in found], [each.colocated_gpus for each in found]
    assert counts == sorted(counts)
    assert counts[0] < counts[2] < counts[3]
    assert colocated == sorted(colocated)  # no router makes what it is compared with look worse


@pytest.mark.parametrize("routing", ["random", "round_robin", "shared"])
@pytest.mark.parametrize("scv", [1.0, 4.0])
def test_pools_take_the_fewest_instances_that_keep_the_target(routing, scv):
    inputs = replace(MANY, routing=routing, arrival_scv=scv)
    result, one = size(inputs), Disaggregated(ServingInputs(**SPREAD, arrival_scv=scv), routing=routing)
    for kind, share in (("prefill", "first_in_time"), ("decode", "next_in_time")):
        number = getattr(result, f"{kind}_instances")
        limit = inputs.ttft_slo_ms if kind == "prefill" else inputs.tpot_slo_ms
        shares = [
            getattr(replace(one, **{f"{kind}_instances": count}), share)(300.0, limit) for count in (number - 1, number)
        ]
        assert shares[1] >= inputs.attainment * (1 - 1e-6) > shares[0]
    assert result.prefill_instances == fewest_prefill(one, 300.0, inputs)
    assert result.decode_instances == fewest_decode(one, 300.0, inputs)


def test_what_a_pool_carries_is_its_goodput_times_its_instances():
    result = size(replace(MANY, routing="shared"))
    pool = Disaggregated(ServingInputs(**SPREAD), result.prefill_instances, 1, routing="shared")
    share = pool.first_in_time(result.prefill_instances * result.prefill_goodput, MANY.ttft_slo_ms)
    assert share == pytest.approx(MANY.attainment, abs=2e-3)


@pytest.mark.parametrize("routing", ["random", "round_robin", "shared"])
def test_pools_hold_their_goodput_in_the_simulation_behind_the_router(routing):
    inputs = replace(MANY, target_rate=120.0, routing=routing, arrival_scv=2.0, customers=30_000)
    for row in check_pools(inputs).rows[:2]:
        assert row.high >= inputs.attainment
        assert (
            row.low <= inputs.attainment + 0.015
        )  # the bursts at instances in turn are a little less than they are taken for


@pytest.mark.parametrize(
    ("routing", "queue"),
    [("random", "(M/G/1 on TTFT)"), ("round_robin", "(G/G/1 on TTFT)"), ("shared", "(M/G/c on TTFT)"),
     ("shortest_queue", "(M/G/c on TTFT)")],
)  # fmt: skip
def test_the_page_of_pools_names_the_queue_that_it_computes(routing, queue):
    inputs = replace(MANY, routing=routing)
    assert queue in wording.basis(inputs, size(inputs))


def test_typed_goodputs_do_not_depend_on_the_router():
    typed = PoolsInputs(prefill_goodput=10.0, decode_goodput=6.0, colocated_goodput=3.0, target_rate=60.0)
    asked = replace(typed, routing="shared", arrival_scv=4.0)
    assert size(asked) == size(typed)


@pytest.mark.parametrize("routing", ["round_robin", "shared"])
def test_a_plan_behind_a_router_keeps_its_targets_in_the_simulation(routing):
    inputs = PlanInputs(rate=120.0, routing=routing, customers=20_000, **SPREAD)
    checked = check_plan(inputs)
    assert checked.predicted_attainment >= inputs.attainment
    assert checked.attainment_high >= inputs.attainment


def test_a_shared_queue_turns_a_plan_towards_disaggregation():
    inputs = PlanInputs(rate=200.0, **SPREAD)
    gpus = {each: deployments_of(replace(inputs, routing=each))["disaggregated"].gpus for each in ("random", "shared")}
    assert gpus["shared"] < gpus["random"]
    assert plan(replace(inputs, routing="shared")).recommendation.gpus <= plan(inputs).recommendation.gpus


@pytest.mark.parametrize("scv", [1.0, 4.0])
def test_placement_counts_instances_behind_the_router(scv):
    inputs = PlacementInputs(target_rate=300.0, arrival_scv=scv, **SPREAD)
    found = {each: place(replace(inputs, routing=each)) for each in ("random", "round_robin", "shared")}
    numbers = [found[each].prefill.instances for each in ("shared", "round_robin", "random")]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[2] or scv > 1  # in bursts instances are large, and two of them
    assert found["shared"].prefill.goodput > found["random"].prefill.goodput
    for result in found.values():
        assert result.group_goodput >= 300 * (1 - 1e-3)
        assert min(result.prefill.attainment, result.decode.attainment) >= inputs.attainment * (1 - 1e-6)


def test_a_histogram_alone_has_its_own_mean_on_the_command_line(capsys):
    assert main(["pools", "--prompt-histogram", "512:1,1536:1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inputs"]["prompt_tokens"] == 640
    assert main(["pools", "--prompt-histogram", "512:1,1536:1", "--prompt-tokens", "512", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["inputs"]["prompt_tokens"] == 512
    assert "taken times 0.8" in " ".join(report["warnings"])


def test_equal_prompts_of_a_pipeline_in_turn_are_those_of_a_shared_queue():
    inputs = PlacementInputs(target_rate=300.0, arrival_scv=2.0)
    turns, shared = (place(replace(inputs, routing=each)).prefill for each in ("round_robin", "shared"))
    assert turns == shared


def test_prompts_behind_a_router_are_those_of_the_event_simulation():
    inputs = ServingInputs(**SPREAD)
    workload = workload_of(MANY, 80.0, 4_000)
    settings = InstanceSettings("prefill", clock_for(inputs, workload))
    by_events = simulate(workload, settings).first_tokens
    for routing in ROUTERS:  # with one instance they are all alike
        found = first_tokens_behind(routing, workload, settings, 1, seed=1)
        assert found == pytest.approx(by_events, rel=1e-9)


def test_pools_behind_the_shortest_queue_are_those_of_the_event_simulation():
    inputs = ServingInputs(**SPREAD)
    workload = workload_of(MANY, 150.0, 6_000)
    clock = clock_for(inputs, workload)
    sides = InstanceSettings("prefill", clock), InstanceSettings("decode", clock)
    found = apart_behind("shortest_queue", workload, sides, (3, 2), None, seed=1)
    other = simulate_disaggregated(workload, *sides, (3, 2))
    assert np.mean(found.ttft) == pytest.approx(np.mean(other.ttft), rel=0.02)  # ties fall otherwise
    assert np.quantile(found.tpot, 0.9) == pytest.approx(np.quantile(other.tpot, 0.9), rel=0.02)
