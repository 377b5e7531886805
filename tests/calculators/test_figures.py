"""Every kind of figure: valid for Plotly, axes with titles and units, no number that is none."""

import io
import json
import math

import numpy as np
import plotly.graph_objects as go
import pytest

from calculators import export, plots
from calculators.compare import curves as compare_curves
from calculators.compare import figures as compare_figures
from calculators.compare.compute import compute as compute_compare
from calculators.compare.inputs import CompareInputs
from calculators.experts import curves as experts_curves
from calculators.experts import figures as experts_figures
from calculators.experts.check import check as check_experts
from calculators.experts.compute import ExpertsInputs
from calculators.experts.compute import compute as compute_experts
from calculators.experts.ranks import ranks_table
from calculators.experts.routing import routing_of
from calculators.hardware import figures as hardware_figures
from calculators.hardware.tables import HardwareInputs, rooflines
from calculators.kv_cache import curves as kv_curves
from calculators.kv_cache import figures as kv_figures
from calculators.kv_cache.compute import KvCacheInputs
from calculators.kv_cache.compute import compute as compute_kv
from calculators.parallelism import figures as parallelism_figures
from calculators.parallelism import maps
from calculators.parallelism.compute import LEVELS, ParallelismInputs
from calculators.parallelism.compute import compute as compute_parallelism
from calculators.pools import curves as pools_curves
from calculators.pools import figures as pools_figures
from calculators.pools.compute import compute as compute_pools
from calculators.pools.compute import goodputs_of, sides_of
from calculators.pools.inputs import PoolsInputs
from calculators.speculative import curves as speculative_curves
from calculators.speculative import figures as speculative_figures
from calculators.speculative.check import check as check_speculative
from calculators.speculative.compute import SpeculativeInputs
from calculators.speculative.compute import compute as compute_speculative
from calculators.speculative.costs import pair_of
from calculators.speculative.machines import spill_of
from calculators.traces import read_trace
from calculators.ttft import burst_figures, traffic_figures
from calculators.ttft import figures as ttft_figures
from calculators.ttft.batching import batch_curves, batching
from calculators.ttft.bursts import at_the_same_load, first_token_ms
from calculators.ttft.check import check
from calculators.ttft.compute import compute as compute_ttft
from calculators.ttft.compute import sweep
from calculators.ttft.convoy import convoy, convoy_curve
from calculators.ttft.curves import curves_of
from calculators.ttft.effects import effects
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.sensitivity import sensitivities
from calculators.ttft.trace_statistics import statistics_of


def ttft_all(**changes):
    inputs = TtftInputs(customers=20_000, **changes)
    result = compute_ttft(inputs)
    yield ttft_figures.ttft_against_rate(inputs, result, sweep(result.service_ms, inputs.percentile))
    if result.stable:
        checked = check(inputs)
        yield ttft_figures.distribution(checked)
        yield ttft_figures.short_runs(checked)
        yield ttft_figures.what_matters(sensitivities(inputs), "P90 TTFT")


def traffic_all(**changes):
    inputs = TtftInputs(customers=20_000, **changes)
    result = compute_ttft(inputs, thorough=False)
    yield ttft_figures.ttft_against_rate(inputs, result, curves_of(inputs))
    yield traffic_figures.effect_bars(inputs, effects(inputs, slow=False))


def trace_all():
    generator = np.random.default_rng(1)
    times = 1e3 * np.cumsum(generator.gamma(0.5, 0.1, 500))
    rows = [f"{t:.2f},{n % 90 + 1},7" for n, t in enumerate(times)]
    trace = read_trace(io.BytesIO("\n".join(["timestamp,input_length,output_length", *rows]).encode()))
    found = statistics_of(trace)
    yield traffic_figures.rate_over_time(found, 20.0)
    yield traffic_figures.bursts(found.bursts, 2.0)
    yield traffic_figures.lengths(found.inputs, "prompts")
    yield traffic_figures.lengths(found.outputs, "outputs")


def parallelism_all(**changes):
    inputs = ParallelismInputs(**changes)
    result = compute_parallelism(inputs)
    for by in LEVELS:
        yield parallelism_figures.ttft_against_rate(inputs, result, by)
        yield parallelism_figures.winner_map(inputs, result, maps.winner_map(inputs, result, by))
    yield parallelism_figures.speedup_curves(inputs, maps.speedup_curves(inputs))


def kv_all(**changes):
    inputs = KvCacheInputs(**changes)
    result = compute_kv(inputs)
    transfers, prefill = kv_curves.transfer_curves(inputs), kv_curves.prefill_curve_ms(inputs)
    yield kv_figures.transfer_against_prompt(inputs, result, transfers, prefill)
    yield kv_figures.cache_against_context(inputs, kv_curves.cache_curves(inputs))
    yield kv_figures.overlap_chart(result, kv_figures.overlap(inputs, result))


def speculative_all(**changes):
    inputs = SpeculativeInputs(customers=20_000, **changes)
    result, pair = compute_speculative(inputs), pair_of(inputs)
    yield speculative_figures.speedup_against_length(
        inputs, result, speculative_curves.length_curves(inputs), speculative_curves.arithmetic_bound_from(inputs)
    )
    yield speculative_figures.round_in_time(result, speculative_curves.timeline(inputs))
    yield speculative_figures.speedup_map(result, speculative_curves.cost_map(inputs))
    yield speculative_figures.tokens_against_length(result, speculative_curves.tokens_curve(inputs))
    found = speculative_curves.batch_curve(inputs)
    if found is not None:
        spill = spill_of(pair.draft) if pair else None
        yield speculative_figures.speedup_against_batch(inputs, result, found, spill)
    checked = check_speculative(inputs)
    yield speculative_figures.accepted_distribution(checked.counts, checked.expected)
    yield speculative_figures.sampled_tokens(checked.sampling)


def experts_all(**changes):
    inputs = ExpertsInputs(customers=10_000, **changes)
    result, routing = compute_experts(inputs), routing_of(inputs)
    yield experts_figures.share_against_tokens(inputs, result.tokens, experts_curves.read_curves(inputs))
    if routing is None:
        return
    curve = experts_curves.touched_curve(inputs, routing)
    yield experts_figures.touched_against_tokens(result, curve, even=routing.even)
    yield experts_figures.load_against_ranks(inputs, ranks_table(inputs, routing))
    if routing.recorded:
        steps = experts_curves.step_curve(inputs, routing, result)
        yield experts_figures.time_against_tokens(inputs, result, steps)
        yield experts_figures.bytes_against_tokens(result, steps)
    checked = check_experts(inputs)
    yield experts_figures.simulated_counts(checked)
    yield experts_figures.popularity_of_experts(checked)


def pools_all(**changes):
    inputs = PoolsInputs(**changes)
    result, sides = compute_pools(inputs), sides_of(inputs, goodputs_of(inputs))
    yield pools_figures.goodput_against_rate(result, pools_curves.rate_curve(inputs, result, sides))
    yield pools_figures.goodput_against_budget(result, pools_curves.budgets(result, sides))
    yield pools_figures.shifted_workload(pools_curves.shift_map(inputs, result))


def bursts_all(**changes):
    inputs = TtftInputs(**changes)
    yield burst_figures.burst(inputs, first_token_ms(inputs))
    if rows := at_the_same_load(inputs):
        yield burst_figures.same_load(rows)
    if found := convoy(inputs):
        yield burst_figures.convoy(found, convoy_curve(found))
    if inputs.service_ms is None:
        yield burst_figures.batches(inputs, batch_curves(inputs, batching(inputs)))


def compare_all(**changes):
    inputs = CompareInputs(**changes)
    result, lines = compute_compare(inputs), compare_curves.against_rate(inputs)
    yield compare_figures.attainment_against_rate(inputs, result, lines)
    for what in ("ttft", "tpot"):
        yield compare_figures.time_against_rate(inputs, lines, what)
    yield compare_figures.attainment_against_scale(inputs, compare_curves.tightened(inputs))
    yield compare_figures.goodput_against_efficiency(inputs, result, compare_curves.degraded(inputs))


def hardware_all():
    inputs = HardwareInputs()
    lines, _ = rooflines(inputs)
    yield hardware_figures.roofline_plot(lines, inputs.accelerator, "bf16")


FIGURES = [
    *ttft_all(),
    *ttft_all(rate=18, service_ms=50, percentile=95),
    *ttft_all(rate=500),
    *ttft_all(model="llama-3.1-70b"),
    *ttft_all(rate=0.001, service_ms=0.001),
    *traffic_all(prompt_cv=1.0),
    *traffic_all(servers=8, routing="shared", rate=400),
    *traffic_all(arrival_scv=0.0, rate=500),
    *traffic_all(servers=4, routing="shortest_queue", rate=200),
    *traffic_all(arrivals="spells"),
    *bursts_all(),
    *bursts_all(servers=4, rate=180, burst=1000, prompt_tokens=16, routing="random", arrivals="batches"),
    *bursts_all(service_ms=100, rate=500, burst=1, ttft_slo_ms=10),
    *trace_all(),
    *parallelism_all(model="llama-3.1-70b", gpus=4),
    *parallelism_all(rate=500, service_ms=100, speedup=2),
    *kv_all(),
    *kv_all(model="qwen3-next-80b-a3b", link="eth-10g", rate=1000),
    *speculative_all(),
    *speculative_all(draft_cost=0.1, verify_cost=1, acceptance=1),
    *speculative_all(target="gpt-oss-120b", draft_accelerator="dmatrix-corsair", draft_size_b=1.6, acceptance=0),
    *speculative_all(acceptance_curve="1:1.78, 8:3.74", draft_tokens=256, batch=100_000),
    *experts_all(),
    *experts_all(model="deepseek-v3", ep=8, tp=4, batch=256),
    *experts_all(experts=1, experts_per_token=1, tokens=1),
    *experts_all(model="gpt-oss-120b", zipf_exponent=1.5, tokens=3000, batch=1),
    *pools_all(),
    *pools_all(prefill_goodput=6, decode_goodput=20, target_rate=1e5, decode_tp=2),
    *compare_all(),
    *hardware_all(),
]


@pytest.mark.parametrize("figure", FIGURES)
def test_it_is_what_plotly_accepts(figure):
    go.Figure(figure.to_dict())  # validates, and raises where it does not understand


@pytest.mark.parametrize("figure", FIGURES)
def test_its_axes_have_titles_with_units(figure):
    layout = figure.to_dict()["layout"]
    assert layout["xaxis"]["title"]["text"].endswith((")", "Requests in the run"))
    title = layout["yaxis"]["title"]["text"]
    assert title == "" or title.endswith(")") or title.startswith(("Share", "Speedup", "Tensor speedup", "Layer"))


@pytest.mark.parametrize("figure", FIGURES)
def test_no_range_mark_or_note_is_infinite_or_nan(figure):
    layout = json.loads(figure.to_json())["layout"]
    numbers = [*layout["xaxis"].get("range", []), *layout["yaxis"].get("range", [])]
    numbers += [shape[side] for shape in layout["shapes"] for side in ("x0", "x1", "y0", "y1")]
    numbers += [note[side] for note in layout["annotations"] for side in ("x", "y") if side in note]
    assert all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)


def test_a_figure_for_a_report_says_what_it_shows_and_for_which_scenario():
    exported = plots.captioned(FIGURES[0], "TTFT against rate", "llama-3.1-8b on h100-sxm")
    assert exported.layout.title.text == "TTFT against rate"
    assert exported.layout.title.subtitle.text == "llama-3.1-8b on h100-sxm"
    page = export.to_html(exported).decode()
    assert "TTFT against rate" in page
    assert '"showSendToCloud": false' in page
    assert "https://cdn" not in page.split("<script", 2)[1]


def test_a_table_is_written_with_all_digits():
    text = export.to_csv({"Rate (requests/s)": [1 / 3, 2.0], "Name": ["a", "b,c"]}).decode()
    assert text == 'Rate (requests/s),Name\r\n0.3333333333333333,a\r\n2.0,"b,c"\r\n'


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match="longer"):
        export.to_csv({"a": [1], "b": [1, 2]})
