"""The search for a placement: against brute force, with its reasons, its layout, and DistServe's own choices."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import hardware_db
from calculators.__main__ import main
from calculators.decode_pool import PoolInputs, pool_of
from calculators.inputs import InputsError, part_of
from calculators.outputs import as_dict
from calculators.placement import ROOM, figures, published, wording
from calculators.placement.candidates import Candidate, Evaluator, Shape, hand_off, shapes
from calculators.placement.check import check, largest_rate, rank_correlation, regret
from calculators.placement.cluster import PlacementInputs, SearchInputs, hops_s
from calculators.placement.compute import compute
from calculators.placement.explanation import facts, formulas
from calculators.placement.goodput import PrefillPipeline
from calculators.placement.search import best_unit, evaluator_of, search
from calculators.placement.step_times import ModelledTimes
from calculators.service_time import PrefillInputs, stage_times_ms
from calculators.ttft.compute import TtftInputs
from calculators.ttft.compute import compute as ttft
from formulas.interference.prompts import max_rate
from formulas.montecarlo.serving import Lengths
from formulas.montecarlo.tandem import simulate_tandem
from formulas.parallelism import percentiles
from formulas.queueing.service import LognormalLengths, scaled, service_law

SMALL = {"nodes": 2, "node_gpus": 2, "target_rate": 100}
LARGE = {"model": "llama-3.1-70b", "ttft_slo_ms": 1000, "tpot_slo_ms": 50, "target_rate": 100}


@pytest.fixture(scope="module")
def large():
    return compute(PlacementInputs(**LARGE))


@pytest.fixture(scope="module")
def slow():
    return compute(PlacementInputs(**LARGE, network="slow"))


def searched(**values):
    inputs = part_of(SearchInputs, PlacementInputs(**values))
    return inputs, search(inputs)


# --- the value of one configuration ---------------------------------------------------------------------------


def test_one_accelerator_of_prefill_is_the_queue_of_the_ttft_page():
    _, found = searched(**SMALL)
    alone = next(each for each in found.candidates if (each.side, each.tp, each.pp) == ("prefill", 1, 1))
    assert alone.goodput == pytest.approx(ttft(TtftInputs()).max_rate, rel=1e-9)
    assert alone.goodput == pytest.approx(59.1, abs=0.05)  # lecture 6: prefill only, one H100, P90 within 100 ms


@pytest.mark.parametrize("tp", [1, 2])
def test_one_stage_of_decoding_is_the_pool_of_the_decode_page(tp):
    inputs, found = searched(**SMALL)
    candidate = next(each for each in found.candidates if (each.side, each.tp, each.pp) == ("decode", tp, 1))
    pool = pool_of(part_of(PoolInputs, inputs, tp=tp))
    left_ms = inputs.tpot_slo_ms - 1e3 * found.transfer_s / inputs.steps
    assert candidate.slots == pool.slots
    assert candidate.goodput == pytest.approx(pool.max_rate(left_ms, inputs.attainment), rel=2e-3)


@pytest.mark.parametrize("shape", [Shape(1, 2, 1), Shape(2, 2, 2), Shape(1, 4, 2)])
def test_the_goodput_of_a_prefill_pipeline_is_where_its_percentile_meets_the_target(shape):
    inputs, found = searched(**SMALL)
    candidate = next(
        each for each in found.candidates if (each.side, each.tp, each.pp) == ("prefill", shape.tp, shape.pp)
    )
    times_s = 1e-3 * np.array(stage_times_ms(part_of(PrefillInputs, inputs, tp=shape.tp, service_ms=None), shape.pp))
    hop = hops_s(inputs, shape.boundaries, inputs.prompt_tokens) / (shape.pp - 1)
    at = percentiles.pipeline_quantile(0.9, candidate.goodput, times_s, hop)
    assert 1e3 * at == pytest.approx(inputs.ttft_slo_ms, rel=1e-9)


def test_at_its_goodput_a_decode_pipeline_is_just_in_time():
    inputs, found = searched(**SMALL)
    for candidate in found.allowed("decode"):
        shape = Shape(candidate.tp, candidate.pp, candidate.nodes)
        left_s = 1e-3 * inputs.tpot_slo_ms - found.transfer_s / inputs.steps
        pipeline = Evaluator(inputs, ModelledTimes(), found.hand_off, left_s).decode_pipeline(shape, candidate.slots)
        assert pipeline.law(0.998 * candidate.goodput).tpot_from_arrival(0.9) <= left_s
        assert pipeline.law(min(1.002 * candidate.goodput, 1e9)).tpot_from_arrival(0.9) >= left_s * 0.999


# --- the search against brute force ---------------------------------------------------------------------------


def test_a_fast_network_takes_the_best_of_each_side():
    inputs, found = searched(**SMALL)
    moved = hand_off(inputs)
    best = {}
    for tp in (1, 2):
        for pp in range(1, 4 // tp + 1):
            shape = Shape(tp, pp, -(-pp // (2 // tp)))
            one = Evaluator(inputs, ModelledTimes(), moved, 0.0).candidate("prefill", shape)
            best[tp, pp] = one.goodput / (tp * pp)
    winner = max(best, key=best.get)
    assert (found.best("prefill").tp, found.best("prefill").pp) == winner
    assert found.best("prefill").goodput_per_gpu == pytest.approx(best[winner])
    left_s = 1e-3 * inputs.tpot_slo_ms - moved.mean_s(found.best("prefill").goodput) / inputs.steps
    best = {
        (tp, pp): Evaluator(inputs, ModelledTimes(), moved, left_s)
        .candidate("decode", Shape(tp, pp, -(-pp // (2 // tp))))
        .goodput_per_gpu
        for tp in (1, 2)
        for pp in range(1, 4 // tp + 1)
    }
    winner = max(best, key=best.get)
    assert (found.best("decode").tp, found.best("decode").pp) == winner
    assert found.best("decode").goodput_per_gpu == pytest.approx(best[winner])


def test_a_slow_network_takes_the_best_pair_that_shares_its_nodes():
    inputs, found = searched(nodes=2, node_gpus=4, network="slow")
    rows = [each for each in found.candidates if each.allowed]
    best = 0.0
    for one in rows:
        for other in rows:
            if (one.side, other.side) != ("prefill", "decode") or one.nodes != other.nodes:
                continue
            for many in range(1, 5):
                for more in range(1, 5):
                    if (many * one.gpus + more * other.gpus) / one.nodes <= 4:
                        goodput = min(many * one.goodput, more * other.goodput)
                        best = max(best, goodput / (many * one.gpus + more * other.gpus))
    assert found.units[0].goodput_per_gpu == pytest.approx(best, rel=1e-12)
    for unit in found.units:
        assert unit.gpus <= unit.nodes * inputs.node_gpus
        assert unit.prefill.nodes == unit.decode.nodes == unit.nodes


def test_every_configuration_of_the_cluster_is_looked_at_once():
    inputs, _ = searched(**LARGE)
    expected = {(tp, pp) for tp in range(1, 9) for pp in range(1, 32 // tp + 1)}
    found = [(each.tp, each.pp) for each in shapes(inputs)]
    assert set(found) == expected
    assert len(found) == len(expected)


def test_equal_goodputs_go_to_fewer_accelerators():
    values = {"reasons": (), "notes": (), "alone_ms": 1.0, "slots": 9, "nodes": 1, "refused_by": ""}
    one, other = (
        Candidate(side=side, tp=1, pp=1, gpus=1, goodput=10.0, goodput_per_gpu=10.0, **values)
        for side in ("prefill", "decode")
    )
    unit = best_unit(8, one, other, 8)
    assert (unit.prefill_instances, unit.decode_instances, unit.gpus) == (1, 1, 2)


# --- what is refused, and why ---------------------------------------------------------------------------------


@pytest.mark.parametrize("network", ["fast", "slow"])
@pytest.mark.parametrize("model", ["llama-3.1-70b", "deepseek-v3", "opt-66b"])
def test_a_configuration_has_a_goodput_or_reasons(model, network):
    _, found = searched(model=model, network=network, ttft_slo_ms=1000, tpot_slo_ms=40, nodes=2)
    for each in found.candidates:
        assert bool(each.reasons) == bool(each.refused_by) == (each.goodput is None) == (each.goodput_per_gpu is None)
        assert all(reason and not reason.endswith(".") for reason in each.reasons)
    goodputs = [each.goodput_per_gpu for each in found.candidates if each.allowed]
    assert goodputs == sorted(goodputs, reverse=True) or np.allclose(
        goodputs, sorted(goodputs, reverse=True), rtol=1e-8
    )


def reasons(found, side, tp, pp):
    return next(each.reasons for each in found.candidates if (each.side, each.tp, each.pp) == (side, tp, pp))


def test_the_reasons_name_heads_nodes_memory_and_time():
    _, found = searched(**LARGE)
    assert reasons(found, "prefill", 3, 1)[0] == "3 does not divide the 64 query heads"
    assert reasons(found, "prefill", 5, 5)[0] == "5 does not divide the 64 query heads"
    assert "141.1 GB of weights" in reasons(found, "prefill", 1, 1)[0]
    assert "too slow even unloaded" in reasons(found, "decode", 1, 2)[0]
    _, tight = searched(**LARGE | {"ttft_slo_ms": 100})
    assert "too slow even unloaded: " in reasons(tight, "prefill", 1, 2)[0]
    _, small = searched(nodes=3, node_gpus=3, model="opt-13b")
    assert "need 4 nodes, 1 stages in each, and there are 3" in reasons(small, "prefill", 2, 4)[0]


def test_weights_cache_and_reserve_are_counted_to_the_byte():
    model, chip = hardware_db.models()["llama-3.1-70b"], hardware_db.accelerators()["h100-sxm"]
    inputs = PlacementInputs(**LARGE)
    for side, pp, tokens in (("decode", 2, 512 + 63), ("prefill", 3, 512)):
        found = search(part_of(SearchInputs, inputs))
        candidate = next(each for each in found.candidates if (each.side, each.tp, each.pp) == (side, 1, pp))
        layers = math.ceil(80 / pp)
        room = 0.9 * chip.memory_bytes - 2e9 - model.weight_bytes("bf16") * layers / 80
        assert candidate.slots == math.floor(room / (tokens * 2 * 8 * 128 * 2 * layers))


def test_a_reserve_can_refuse_what_fitted_before():
    _, found = searched(**LARGE)
    _, less = searched(**LARGE, reserve_gb=20)
    assert not any("reserve" in reason for reason in reasons(found, "prefill", 1, 3))
    assert "20 GB of reserve" in reasons(less, "prefill", 1, 2)[0]
    assert sum(each.allowed for each in less.candidates) < sum(each.allowed for each in found.candidates)


def test_a_prefill_pipeline_needs_room_for_a_prompt_in_each_stage():
    _, found = searched(**LARGE | {"prompt_tokens": 60_000, "ttft_slo_ms": 1e6})
    assert "caches of 2 prompts, one for each stage" in reasons(found, "prefill", 1, 2)[0]


# --- the link -------------------------------------------------------------------------------------------------


def test_a_slow_link_holds_prefill_back_and_matching_stages_do_not():
    values = LARGE | {
        "model": "opt-66b",
        "accelerator": "a100-80-sxm",
        "tpot_slo_ms": 100,
        "link": "eth-25g",
        "nodes": 1,
    }
    _, crossing = searched(**values)
    _, inside = searched(**values, network="slow")
    most = 0.8 * 25e9 / 8 / (64 * 2 * 9216 * 2 * 512)
    assert max(each.goodput for each in crossing.allowed("prefill")) == pytest.approx(most)
    assert any("by its link" in note for each in crossing.allowed("prefill") for note in each.notes)
    assert max(each.goodput for each in inside.allowed("prefill")) > 2 * most
    assert inside.transfer_s < crossing.transfer_s / 50


def test_the_traffic_is_that_of_the_cache(large):
    kv_bytes = 80 * 2 * 8 * 128 * 2 * 512
    assert large.kv_gbit_s == pytest.approx(100 * kv_bytes * 8 / 1e9)
    assert large.link_gbit_s == pytest.approx(400)
    assert large.link_utilization == pytest.approx(large.kv_gbit_s / large.prefill.instances / 400)


# --- the answer -----------------------------------------------------------------------------------------------


def test_instances_are_the_rate_over_the_goodput(large):
    for side in (large.prefill, large.decode):
        assert side.instances == math.ceil(100 / side.goodput)
        assert side.goodput_per_gpu == pytest.approx(side.goodput / side.gpus)
    assert large.gpus == sum(each.instances * each.gpus for each in (large.prefill, large.decode))
    assert large.goodput_per_gpu == pytest.approx(100 / large.gpus)
    assert large.group_goodput >= 100
    assert large.attainment >= 0.81
    assert large.fewest_gpus <= large.gpus


def test_both_targets_at_once_cost_goodput_and_are_kept():
    each, both = (
        compute(PlacementInputs(**LARGE | {"target_rate": 5000, "attained_by": by})) for by in ("each", "both")
    )
    assert each.attainment < both.attainment
    assert both.attainment >= 0.9
    assert both.prefill.goodput < each.prefill.goodput


@pytest.mark.parametrize("field", ["ttft_slo_ms", "tpot_slo_ms"])
def test_a_looser_target_never_lowers_the_goodput(field):
    side = "prefill" if field == "ttft_slo_ms" else "decode"
    inputs, found = searched(**SMALL)
    looser = search(replace(inputs, **{field: 1.5 * getattr(inputs, field)}))
    assert looser.best(side).goodput_per_gpu >= found.best(side).goodput_per_gpu * (1 - 1e-3)


def test_every_accelerator_is_taken_once_and_a_stage_stays_in_its_node(large, slow):
    for result in (large, slow):
        seats = result.layout.seats
        assert len(seats) == len({(seat.node, seat.place) for seat in seats}) == result.gpus
        assert all(1 <= seat.place <= 8 for seat in seats)
        assert max(seat.node for seat in seats) == result.layout.nodes == result.nodes_needed
        stages = Counter((seat.side, seat.instance, seat.stage) for seat in seats)
        tp = {"prefill": result.prefill.tp, "decode": result.decode.tp}
        assert all(count == tp[side] for (side, _, _), count in stages.items())
        nodes = {(seat.side, seat.instance, seat.stage): set() for seat in seats}
        for seat in seats:
            nodes[seat.side, seat.instance, seat.stage].add(seat.node)
        assert all(len(where) == 1 for where in nodes.values())


def test_on_a_slow_network_the_same_layers_share_a_node(slow):
    """Unit 1: the share of the pipeline that a stage holds starts in the same node on both sides."""
    where = {
        (seat.side, (seat.stage - 1) * slow.pairs[0].nodes // getattr(slow, seat.side).pp): seat.node
        for seat in slow.layout.seats
        if seat.instance == 1
    }
    for segment in range(slow.pairs[0].nodes):
        assert where["prefill", segment] == where["decode", segment]


def test_a_cluster_too_small_says_what_it_carries():
    result = compute(PlacementInputs(**LARGE | {"target_rate": 1000}))
    assert result.verdict == "cluster_too_small"
    assert result.nodes_needed > 4
    assert 100 < result.cluster_goodput < 1000
    small = compute(PlacementInputs(**LARGE | {"target_rate": result.cluster_goodput}))
    assert small.gpus <= 32
    assert "the cluster has **4**" in ROOM.answer(PlacementInputs(**LARGE | {"target_rate": 1000}), result)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({"model": "deepseek-v3", "nodes": 1}, "does_not_fit"),
        ({"nodes": 1, "node_gpus": 1}, "cluster_too_small"),
        ({"nodes": 1, "node_gpus": 1, "network": "slow"}, "refused"),
        ({"ttft_slo_ms": 0.001}, "too_slow_unloaded"),
        ({"tpot_slo_ms": 0.001}, "too_slow_unloaded"),
        ({"output_tokens": 1}, "nothing_to_decode"),
        ({"output_tokens": 1, "network": "slow"}, "nothing_to_decode"),
        ({"output_tokens": 2, "tpot_slo_ms": 1000}, "fits"),
        ({"target_rate": 0.001}, "fits"),
        ({"target_rate": 1e6}, "cluster_too_small"),
        ({"link_gb_s": 0.001, "tpot_slo_ms": 100}, "too_slow_unloaded"),
        ({"attainment": 0.9999, "output_cv": 3}, "cluster_too_small"),
        ({"node_gpus": 3, "nodes": 3}, "fits"),
        ({"accelerator": "l4", "model": "llama-3.1-8b", "ttft_slo_ms": 2000, "tpot_slo_ms": 200}, "cluster_too_small"),
    ],
)
def test_extremes_have_an_answer_in_words_and_no_odd_numbers(values, verdict):
    inputs = PlacementInputs(**{"nodes": 2, "node_gpus": 2} | values)
    result = compute(inputs)
    assert result.verdict == verdict
    json.dumps(as_dict(result), allow_nan=False)
    assert "None" not in ROOM.answer(inputs, result)
    assert figures.goodput_per_gpu(result).data
    assert formulas(inputs, result) or result.prefill is None
    assert facts(inputs)


def test_a_data_type_that_the_chip_lacks_is_an_error():
    with pytest.raises(InputsError, match="no fp8"):
        compute(PlacementInputs(accelerator="a100-80-sxm", weight_dtype="fp8"))


@pytest.mark.parametrize("network", ["fast", "slow"])
def test_the_command_line_has_the_keys_that_were_promised(capsys, network):
    words = (
        "placement --model llama-3.1-70b --accelerator h100-sxm --ttft-slo-ms 1000 --tpot-slo-ms 50 --attainment 0.9"
    )
    assert main([*words.split(), "--target-rate", "100", "--network", network, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    for side in ("prefill", "decode"):
        assert results[side].keys() >= {"tp", "pp", "gpus", "goodput", "goodput_per_gpu", "instances"}
    assert results.keys() >= {"gpus", "goodput_per_gpu", "kv_gbit_s", "table"}
    assert results["table"][0].keys() >= {"side", "tp", "pp", "goodput_per_gpu", "reasons"}


@pytest.mark.parametrize("network", ["fast", "slow"])
def test_the_figures_are_valid(network):
    import plotly.graph_objects as go

    inputs = PlacementInputs(**SMALL | {"target_rate": 2000, "network": network})
    result = compute(inputs)
    for figure in (figures.seats(inputs, result), figures.goodput_per_gpu(result)):
        go.Figure(figure.to_dict())


# --- the event simulation -------------------------------------------------------------------------------------


def test_the_finalists_keep_their_order_in_the_simulation():
    found = check(PlacementInputs(nodes=1, node_gpus=2, customers=10_000, output_tokens=16))
    assert found.decode_rank_correlation >= 0.5
    assert found.prefill_regret <= 0.02
    assert found.decode_regret <= 0.02
    assert found.largest_off_percent <= 4
    assert {row.side for row in found.rows} == {"prefill", "decode"}


def test_on_a_slow_network_the_joint_choices_are_compared():
    found = check(PlacementInputs(nodes=1, node_gpus=3, customers=10_000, output_tokens=8, network="slow"))
    assert found.prefill_regret is None
    assert found.joint_regret <= 0.02


def test_rank_correlation_and_regret_of_known_goodputs():
    pairs = [(3.0, 2.0), (2.0, 2.5), (1.0, 1.0)]
    assert rank_correlation(pairs) == pytest.approx(0.5)
    assert regret(pairs) == pytest.approx(0.2)
    assert rank_correlation(pairs[:2]) is None
    assert regret([]) is None


@pytest.mark.parametrize("guess", [1.0, 9.9, 10.0, 30.0])
def test_the_largest_rate_is_found_from_any_guess(guess):
    assert largest_rate(lambda rate: rate <= 10, guess) == pytest.approx(10, rel=0.006) or guess == 1.0


# --- DistServe's own choices ----------------------------------------------------------------------------------


def test_with_lengths_that_spread_the_choices_come_nearer():
    case = published.CASES[0]
    equal, spread = published.compare(case), published.compare(case, 1.0)
    assert (equal.ours, spread.ours) == ("TP 1 PP 4; TP 1 PP 4", "TP 4 PP 1; TP 1 PP 3")
    assert equal.share == pytest.approx(0.592, abs=0.002)
    assert spread.share == pytest.approx(0.73, abs=0.01)


def test_the_released_step_times_are_those_published():
    inputs = replace(published.inputs_of(published.CASES[0]), prompt_tokens=512)
    times = published.FittedTimes("opt-13b")
    one, two = (1e3 * times.prefill_s(inputs, tp, 1)[0] - 1 for tp in (1, 2))  # simdistserve adds 1 ms a stage
    assert one == pytest.approx(72.15, abs=0.01)
    assert one / two == pytest.approx(1.43, abs=0.005)
    assert "TP 1, 2, 4 only" in times.refusal(8)
    steps = times.decode_s(inputs, 1, 1, np.arange(1.0, 200.0), 600)[0]
    assert np.all(np.diff(steps) >= 0)


def test_distserves_choices_beside_ours_with_the_difference_said():
    rows = published.compared()
    assert [row.theirs for row in rows] == [
        "TP 2 PP 1; TP 1 PP 1", *["TP 4 PP 1; TP 2 PP 2"] * 3, "TP 3 PP 3; TP 4 PP 3",
    ]  # fmt: skip
    assert [row.step_times.split(",")[0] for row in rows] == ["released profile"] * 4 + ["step-time model"]
    for row in rows:
        assert 0.5 < row.share <= 1 + 1e-9  # by our own closed forms, ours cannot lose
        assert row.several_per_gpu >= row.ours_per_gpu * (1 - 1e-9)
        assert row.why == "The same." if row.ours == row.theirs else "requests/s on" in row.why


def test_the_tables_leave_out_what_is_said_elsewhere():
    rows = published.compared()
    assert "Why they differ" not in wording.choices(rows)
    assert wording.why_they_differ(rows).count("\n- ") == len(rows) - 1
    for side in ("prefill", "decode"):
        columns = wording.ranked([each for each in compute(PlacementInputs(**SMALL)).table if each.allowed], side)
        assert "Side" not in columns
        assert "Why not" not in columns
        assert len(set(map(len, columns.values()))) == 1


def test_the_formula_of_prefill_says_where_it_does_not_hold():
    for changes, said in (
        ({}, "exact in M/D/1"),
        ({"prompt_cv": 1.0, "arrival_scv": 4.0}, "is a mark to compare with"),
    ):
        inputs = PlacementInputs(**SMALL, **changes)
        assert said in formulas(inputs, compute(inputs))[0].remark


def test_prompts_of_different_lengths_move_opt_13b_to_two_ranks():
    case, generator = published.CASES[0], np.random.default_rng(1)
    tokens = Lengths(case.prompt_tokens, 1.0, 2048).draw(10_000, generator).astype(float)
    gaps = generator.standard_exponential(tokens.size)

    def goodput_per_gpu(tp, pp):
        fixed, token, square = published.FITS[case.model][tp].prefill
        stage = 1e-3 * ((fixed + token * tokens + square * tokens**2) / pp + pp)
        in_time = lambda rate: np.mean(simulate_tandem(gaps / rate, np.tile(stage, (pp, 1)))[500:] <= case.ttft_s)  # noqa: E731
        return largest_rate(lambda rate: in_time(rate) >= 0.9, 0.5 / stage.mean()) / (tp * pp)

    assert max(goodput_per_gpu(2, pp) for pp in (1, 2, 3)) > max(goodput_per_gpu(1, pp) for pp in (1, 2, 4, 6))
    _, found = None, search(published.inputs_of(case), published.FittedTimes(case.model))
    assert found.best("prefill").tp == 1  # with equal prompts


# --- traffic that is not even -----------------------------------------------------------------------------------


def test_spread_prompts_and_bursts_at_one_stage_are_the_queue_itself():
    for scv in (1.0, 4.0):
        inputs = part_of(SearchInputs, PlacementInputs(**SMALL, prompt_cv=1.0, arrival_scv=scv))
        pipeline = evaluator_of(inputs, search(inputs)).prefill_pipeline(Shape(2, 1, 1))
        law = scaled(pipeline.relative, pipeline.bottleneck_s)
        assert pipeline.latency_s == pytest.approx(pipeline.bottleneck_s)
        assert pipeline.goodput(0.2, 0.9) == pytest.approx(max_rate(0.2, 0.9, law, scv), rel=2e-3)


def test_equal_prompts_at_random_times_are_the_limit_of_both():
    even = PrefillPipeline((0.01, 0.008), 0.007)
    spread = service_law(LognormalLengths(1.0, 1e-3), lambda length: np.asarray(length, float))
    for uneven in (replace(even, relative=spread), replace(even, arrival_scv=1 + 1e-6)):
        assert uneven.goodput(0.06, 0.9) == pytest.approx(even.goodput(0.06, 0.9), rel=0.015)
        assert uneven.share_within(0.06, 50) == pytest.approx(even.share_within(0.06, 50), abs=0.01)
        assert uneven.goodput(0.02, 0.9) is None


@pytest.mark.parametrize("harder", [{"prompt_cv": 1.0}, {"arrival_scv": 5.0}, {"output_cv": 1.0}])
def test_harder_traffic_carries_less_on_every_configuration(harder):
    plain, hard = (
        {(each.side, each.tp, each.pp, each.nodes): each.goodput for each in searched(**SMALL, **changes)[1].candidates}
        for changes in ({}, harder)
    )
    assert plain.keys() == hard.keys()
    for key, goodput in hard.items():
        if goodput and plain[key]:
            assert goodput <= plain[key] * (1 + 2e-3)


def test_the_finalists_of_uneven_traffic_agree_with_the_simulation():
    checked = check(PlacementInputs(**SMALL, prompt_cv=1.0, arrival_scv=3.0, customers=20_000))
    assert max(abs(each.off_percent) for each in checked.rows) < 12
