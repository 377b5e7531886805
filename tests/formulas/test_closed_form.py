import importlib
import pkgutil
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import formulas
from formulas import decode_pool, experts, interference, kv_cache, parallelism, pools, speculative, step_time
from formulas.closed_form import ClosedForm, DomainError, tidy, variable
from formulas.montecarlo import run_length
from formulas.queueing import batching, bursts, many_servers, md1, mg1, order
from formulas.queueing import pollaczek_khinchine as pk
from tests.formulas.latex_value import sides, value

INSIDE = {  # every formula, at a point of its domain
    md1.UTILIZATION: {"rate": 16, "service_time": 0.05},
    md1.MEAN_WAIT: {"rate": 16, "service_time": 0.05},
    md1.MEAN_TTFT: {"rate": 1 / 3, "service_time": 1.2345678},
    md1.WAIT_VARIANCE: {"rate": 7.1, "service_time": 0.12},
    md1.WAIT_SECOND_MOMENT: {"rate": 7.1, "service_time": 2e-6},
    md1.MAX_RATE_MEAN: {"mean_wait": 0.1, "service_time": 0.05},
    md1.DECAY_RATE: {"utilization": 0.9, "service_time": 0.014},
    md1.TAIL_CONSTANT: {"utilization": 0.9},
    md1.TAIL_QUANTILE: {"level": 0.99, "utilization": 0.9, "service_time": 0.014},
    md1.LOW_LOAD_QUANTILE: {"level": 0.95, "utilization": 0.1, "service_time": 0.014},
    pk.UTILIZATION: {"rate": 2, "mean_service": 0.3},
    pk.MEAN_WAIT: {"rate": 2, "mean_service": 0.3, "service_second_moment": 0.2},
    pk.WAIT_SECOND_MOMENT: {
        "rate": 2, "mean_service": 0.3, "service_second_moment": 0.2, "service_third_moment": 0.3,
    },
    pk.WAIT_VARIANCE: {
        "rate": 2, "mean_service": 0.3, "service_second_moment": 0.2, "service_third_moment": 1e-7,
    },
    mg1.MEAN_WAIT_BY_SPREAD: {"utilization": 0.8, "service_scv": 1.5, "mean_service": 0.05},
    bursts.KINGMAN_BOUND: {"utilization": 0.8, "arrival_scv": 4, "service_scv": 1.5, "mean_service": 0.05},
    bursts.ALLEN_CUNNEEN: {"utilization": 0.8, "arrival_scv": 4, "service_scv": 1.5, "mean_service": 0.05},
    bursts.KLB_REGULAR: {"utilization": 0.8, "arrival_scv": 0.25, "service_scv": 1.5, "mean_service": 0.05},
    bursts.KLB_BURSTY: {"utilization": 0.8, "arrival_scv": 4, "service_scv": 1.5, "mean_service": 0.05},
    bursts.GAMMA_DECAY_RATE: {"utilization": 0.9, "shape": 0.25, "service_time": 0.014},
    bursts.BURST_MEAN_WAIT: {"burst": 17, "servers": 4, "full_rounds": 4, "service_time": 0.05},
    bursts.BURST_DRAIN: {"burst": 17, "rate": 16, "service_time": 0.05},
    bursts.BATCH_MEAN_WAIT: {
        "batch_rate": 4, "batch_mean": 4, "batch_second_moment": 28, "mean_service": 0.05, "service_variance": 0.001,
    },
    bursts.SWITCHING_RATE: {"first_rate": 2, "second_rate": 28, "leave_first": 0.05, "leave_second": 0.2},
    bursts.SWITCHING_DISPERSION: {
        "first_rate": 2, "second_rate": 28, "leave_first": 0.05, "leave_second": 0.2, "window": 3,
    },
    bursts.SWITCHING_MEAN_WAIT: {
        "first_rate": 2, "second_rate": 28, "leave_first": 0.05, "leave_second": 0.2, "service_time": 0.05,
        "idle_first": 0.9,
    },
    order.COBHAM_WAIT: {"residual_work": 0.04, "load_before": 0.35, "load_with": 0.8},
    order.CONVOY_TOTAL: {"rate": 16, "long_service": 2.5, "mean_wait": 0.1, "utilization": 0.8},
    order.CONVOY_AFFECTED: {"rate": 16, "long_service": 2.5, "mean_wait": 0.1, "utilization": 0.8},
    order.CONVOY_EXTRA_WAIT: {"long_service": 2.5, "mean_wait": 0.1},
    batching.LARGEST_BATCH_OF_PROMPTS: {"saturation_tokens": 512, "prompt_tokens": 100},
    batching.BATCH_CAPACITY: {"most": 5, "service_time": 0.0141},
    batching.PAIR_SAVING: {"single_s": 0.0141, "pair_s": 0.0171},
    batching.TAKE_ALL_BOUND: {"rate": 40, "fixed_s": 0.0066, "each_s": 0.0141},
    batching.TAKE_ALL_HEAVY_BOUND: {"rate": 40, "fixed_s": 0.0066, "each_s": 0.0141},
    mg1.MEAN_TTFT: {"rate": 2, "mean_service": 0.3, "service_second_moment": 0.2},
    experts.DISTINCT_EXPERTS: {"experts": 128, "experts_per_token": 4, "tokens": 11},
    experts.DISTINCT_VARIANCE: {"experts": 32, "experts_per_token": 4, "tokens": 11},
    experts.RATIO_TO_ONE_TOKEN: {"experts": 128, "experts_per_token": 4, "tokens": 11},
    experts.COVERAGE: {"experts": 256, "experts_per_token": 8, "tokens": 32},
    experts.TOKENS_PER_EXPERT: {"experts": 256, "experts_per_token": 8, "tokens": 32},
    experts.TOKENS_FOR_COVERAGE: {"experts": 256, "experts_per_token": 8, "coverage": 0.95},
    experts.DISTINCT_ON_RANK: {"experts": 256, "experts_per_token": 8, "tokens": 32, "ranks": 32},
    experts.RANK_LOAD: {"experts_per_token": 8, "tokens": 37, "ranks": 32},
    experts.RANK_LOAD_VARIANCE: {"experts": 256, "experts_per_token": 8, "tokens": 37, "ranks": 32},
    experts.EXCHANGE_BYTES: {
        "tokens_per_rank": 128, "ranks_visited": 5.3, "ranks": 8, "hidden": 7168, "element_bytes": 1,
    },
    experts.RIDGE_TOKENS: {
        "compute_efficiency": 0.6, "peak_flops": 989e12, "parameter_bytes": 1, "memory_efficiency": 0.8,
        "memory_bandwidth": 3.35e12,
    },
    experts.CRITICAL_BATCH: {"ridge_tokens": 110.7, "experts": 256, "experts_per_token": 8},
    experts.EFFECTIVE_PARAMETERS: {"dense_params": 17e9, "expert_params": 654e9, "coverage": 0.638},
    experts.EQUIVALENT_PARAMETERS: {"active_params": 37.5e9, "total_params": 671e9},
    step_time.MATMUL_FLOPS: {"active_params": 7504658432, "tokens": 512},
    step_time.ATTENTION_FLOPS: {"layers": 32, "heads": 32, "qk_head_dim": 128, "v_head_dim": 64, "pairs": 131072},
    step_time.COMPUTE_TIME: {"flops": 7.75e12, "compute_efficiency": 0.6, "peak_flops": 989e12, "tp": 2},
    step_time.MEMORY_TIME: {
        "weight_bytes": 15e9, "kv_bytes": 2.9e9, "memory_efficiency": 0.8, "memory_bandwidth": 3.35e12,
        "tp": 16, "kv_shards": 8,
    },
    step_time.ALLREDUCE_TIME: {
        "layers": 80, "tp": 2, "tokens": 512, "hidden": 8192, "link_efficiency": 1, "link_bytes_s": 450e9,
        "allreduce_latency_s": 2e-6,
    },
    step_time.STEP_TIME: {"compute_s": 0.013, "memory_s": 0.0056, "collectives_s": 0.0, "overhead_s": 1e-3},
    run_length.ASYMPTOTIC_VARIANCE: {"rate": 0.9, "service_time": 1},
    run_length.START_DEFICIT: {"rate": 0.9, "service_time": 1},
    run_length.RUN_LENGTH: {
        "utilization": 0.9, "relative_half_width": 0.01, "normal_quantile": 1.959963984540054,
    },
    run_length.RELAXATION_CUSTOMERS: {"utilization": 0.9},
    parallelism.STAGES_MEAN_TTFT: {"rate": 8, "bottleneck_time": 0.06, "latency": 0.1003},
    parallelism.PIPELINE_MEAN_TTFT: {"rate": 14, "service_time": 0.1, "gpus": 2},
    parallelism.TENSOR_MEAN_TTFT: {"rate": 14, "service_time": 0.1, "speedup": 1.6},
    parallelism.REPLICAS_MEAN_TTFT: {"rate": 7.1, "service_time": 0.121514582, "gpus": 4},
    parallelism.PIPELINE_CAPACITY: {"service_time": 0.121514582, "gpus": 4},
    parallelism.TENSOR_CAPACITY: {"service_time": 0.121514582, "speedup": 1.88},
    parallelism.CHUNKED_MEAN_TTFT: {
        "rate": 2, "chunk_time": 0.0231, "mean_chunks": 4.5, "chunks_second_moment": 36.3, "stages": 4,
    },
    parallelism.CROSSOVER_LOAD_TWO: {"speedup": 1.7},
    parallelism.CROSSOVER_LOAD: {"speedup": 2.9, "gpus": 4},
    parallelism.CROSSOVER_RATE: {"service_time": 0.121514582, "speedup": 1.88, "gpus": 2},
    parallelism.STAGES_CROSSOVER_RATE: {"tensor_time": 0.0625, "bottleneck_time": 0.0517, "latency": 0.1031},
    kv_cache.LINK_TIME: {
        "kv_bytes": 262144000, "link_bytes_s": 50e9, "links": 2, "link_efficiency": 0.9, "messages": 4000,
        "message_overhead_s": 1.5e-6,
    },
    kv_cache.TRANSFER_TIME: {
        "kv_bytes": 262144000, "link_bytes_s": 50e9, "links": 4, "link_efficiency": 0.71, "messages": 0,
        "message_overhead_s": 0, "latency_s": 5e-6,
    },
    kv_cache.REQUIRED_BANDWIDTH: {"rate": 20, "kv_bytes": 262144000},
    kv_cache.LINK_MAX_RATE: {"link_time_s": 5.24288e-3},
    kv_cache.LINK_UTILIZATION: {"rate": 20, "link_time_s": 5.24288e-3},
    kv_cache.LINK_MEAN_TRANSFER: {"rate": 120, "link_time_s": 5.24288e-3, "latency_s": 5e-6},
    kv_cache.LINK_SHARED_MEAN_TRANSFER: {"rate": 120, "link_time_s": 5.24288e-3, "latency_s": 5e-6},
    kv_cache.EXPOSED_TIME: {"link_time_s": 0.021, "prefill_s": 0.0141, "layers": 32, "latency_s": 5e-6},
    kv_cache.TRANSFER_FRACTION: {"transfer_s": 5.24788e-3, "prefill_s": 0.0141},
    kv_cache.FETCH_BREAK_EVEN: {"kv_bytes": 262144000, "compute_s": 0.054},
    kv_cache.REUSE_BANDWIDTH: {
        "tokens": 8192, "hidden": 8192, "element_bytes": 2, "gqa": 8, "attention_factor": 4, "linear_factor": 22,
        "flops_s": 2496e12,
    },
    kv_cache.CACHE_MEMORY: {
        "memory_bytes": 85520809984, "memory_share": 0.9, "weight_bytes": 16060522496, "reserve_bytes": 2e9,
    },
    kv_cache.TOKENS_IN_MEMORY: {"cache_bytes": 58908206489, "bytes_per_token_per_rank": 131072},
    kv_cache.LARGEST_BATCH: {"cache_bytes": 58908206489, "bytes_per_sequence_per_rank": 306708480},
    kv_cache.BOUNDARY_BYTES: {"tokens": 512, "hidden": 9216, "element_bytes": 2, "stages": 4},
    decode_pool.AFFINE_RATIO: {"rate": 200, "tokens": 64, "slope_s": 2.66e-5},
    decode_pool.AFFINE_SHAPE: {"fixed_s": 6.6e-3, "slope_s": 2.66e-5},
    decode_pool.AFFINE_MEAN_BATCH: {"rate": 200, "tokens": 64, "fixed_s": 6.6e-3, "slope_s": 2.66e-5},
    decode_pool.AFFINE_MEAN_TPOT: {"rate": 200, "tokens": 64, "fixed_s": 6.6e-3, "slope_s": 2.66e-5},
    decode_pool.AFFINE_MAX_RATE: {"mean_tpot": 0.015, "tokens": 64, "fixed_s": 6.6e-3, "slope_s": 2.66e-5},
    decode_pool.AFFINE_TPOT_VARIANCE: {"rate": 200, "tokens": 64, "fixed_s": 6.6e-3, "slope_s": 2.66e-5},
    decode_pool.FIXED_AVERAGING: {"ratio": 0.5},
    decode_pool.RANDOM_AVERAGING: {"ratio": 0.5},
    decode_pool.PIPELINE_ROUND: {"stages": 4, "slowest_s": 0.011, "way_s": 0.042},
    interference.BUSY_MEAN: {"rate": 40, "work_s": 0.5, "interruption_s": 0.0141},
    interference.BUSY_VARIANCE: {"rate": 40, "work_s": 0.5, "interruption_s": 0.0141},
    interference.NUMBER_DISPERSION: {"rate": 40, "service_time": 0.0141, "arrival_scv": 2.5, "service_scv": 0.8},
    interference.TIME_DISPERSION: {"rate": 40, "service_time": 0.0141, "arrival_scv": 2.5, "service_scv": 0.8},
    interference.SLOWDOWN: {"mixed_step_s": 0.0149, "decode_step_s": 0.0077},
    interference.SPARE_FLOPS: {
        "memory_s": 6.696e-3, "compute_efficiency": 0.6, "peak_flops": 989e12, "tp": 2, "decode_flops": 4.92e11,
    },
    interference.FREE_TOKENS: {"spare_flops": 3.481e12, "token_flops": 15009316864, "pair_flops": 524288},
    interference.PREFILL_FIRST_TTFT: {"rate": 40, "service_time": 0.0141, "residual_s": 0.0039},
    interference.PREFILL_FIRST_TPOT: {
        "rate": 40, "service_time": 0.0141, "tokens": 63, "fixed_s": 6.6e-3, "slope_s": 2.66e-5,
    },
    interference.CLOSED_LOOP_BATCH: {"in_flight": 64, "tokens": 127, "chunks": 2},
    interference.CLOSED_LOOP_TPOT: {"in_flight": 64, "tokens": 127, "chunks": 2, "step_s": 8e-3, "excess_s": 0.014},
    interference.CLOSED_LOOP_TTFT: {"chunks": 2, "mean_tpot": 0.0148, "excess_s": 0.014},
    interference.CLOSED_LOOP_THROUGHPUT: {"in_flight": 64, "tokens": 127, "mean_ttft": 0.0436, "mean_tpot": 0.0148},
    interference.PROMPT_BEFORE_TPOT: {"in_flight": 64, "tokens": 127, "step_s": 8e-3, "prompt_s": 0.0141},
    interference.PROMPT_BEFORE_TTFT: {"in_flight": 64, "tokens": 127, "prompt_s": 0.0141},
    interference.REREAD_TOKENS: {"prompt_tokens": 2048, "chunks": 4},
    speculative.ACCEPTED_TOKENS: {"acceptance": 0.8, "draft_tokens": 4},
    speculative.TOKENS_PER_ROUND: {"acceptance": 0.8, "draft_tokens": 4},
    speculative.SPEEDUP: {"acceptance": 0.7, "draft_tokens": 5, "draft_cost": 0.12, "verify_cost": 1.3},
    speculative.OPERATIONS_RATIO: {"acceptance": 0.8, "draft_tokens": 5, "draft_operations": 0.01},
    speculative.CERTAIN_TOKENS_PER_ROUND: {"draft_tokens": 4},
    speculative.CERTAIN_SPEEDUP: {"draft_tokens": 4, "draft_cost": 0.12, "verify_cost": 1.3},
    speculative.OPTIMAL_DRAFT_TOKENS: {"acceptance": 0.8, "draft_cost": 0.11, "verify_cost": 1.3},
    speculative.BREAK_EVEN_VERIFY_COST: {"acceptance": 0.8, "draft_tokens": 4, "draft_cost": 0.11},
    many_servers.ROUTED_UTILIZATION: {"rate": 60, "mean_service": 0.1, "servers": 8},
    many_servers.MMC_MEAN_WAIT: {"wait_probability": 0.4576, "servers": 8, "utilization": 0.8, "mean_service": 0.1},
    many_servers.MMC_QUANTILE: {
        "level": 0.99, "wait_probability": 0.4576, "servers": 8, "utilization": 0.8, "mean_service": 0.1,
    },
    many_servers.KIMURA_MEAN_WAIT: {"cv": 1.7, "exponential_wait": 0.0286, "equal_wait": 0.0152},
    many_servers.ALLEN_CUNNEEN_MEAN_WAIT: {"cv": 1.7, "exponential_wait": 0.0286},
    many_servers.BURSTY_MEAN_WAIT: {"poisson_wait": 0.0286, "bursty_equal_wait": 0.0903, "equal_wait": 0.0152},
    many_servers.EVEN_MEAN_WAIT: {"poisson_wait": 0.0286, "arrival_scv": 0.25, "cv": 1.3},
    many_servers.ROUND_ROBIN_MEAN_WAIT: {"utilization": 0.8, "servers": 8, "cv": 1.3, "mean_service": 0.1},
    pools.PLANNED_RATE: {"rate": 60, "headroom": 0.3},
    pools.INSTANCES: {"carried_rate": 50, "goodput": 6},
    pools.GROUP_GOODPUT: {
        "prefill_instances": 4, "prefill_goodput": 5.6, "decode_instances": 2, "decode_goodput": 10,
    },
    pools.AFTER_LOSS: {"prefill_instances": 9, "prefill_goodput": 5.6, "decode_instances": 4, "decode_goodput": 10},
    pools.GOODPUT_PER_GPU: {
        "rate": 50, "prefill_instances": 9, "prefill_gpus": 2, "decode_instances": 3, "decode_gpus": 1,
    },
    pools.IDEAL_GOODPUT: {"prefill_gpus": 2, "prefill_goodput": 6, "decode_gpus": 1, "decode_goodput": 20},
    pools.IDEAL_RATIO: {"prefill_goodput": 6, "decode_goodput": 20},
    pools.WASTED: {
        "carried_rate": 50, "prefill_gpus": 2, "prefill_goodput": 6, "decode_gpus": 1, "decode_goodput": 20,
        "prefill_instances": 9, "decode_instances": 3,
    },
    pools.WASTE_BOUND: {
        "carried_rate": 50, "prefill_gpus": 2, "prefill_goodput": 6, "decode_gpus": 1, "decode_goodput": 20,
    },
    pools.GAIN_OVER_COLOCATED: {"goodput_per_gpu": 3.3333, "colocated_per_gpu": 1.6},
}  # fmt: skip
STEPWISE = [  # whole numbers
    kv_cache.TOKENS_IN_MEMORY,
    kv_cache.LARGEST_BATCH,
    batching.LARGEST_BATCH_OF_PROMPTS,
    pools.INSTANCES,
]
ALL = pytest.mark.parametrize("form", INSIDE, ids=lambda f: f.name)


def test_no_formula_is_left_out():
    modules = [importlib.import_module(m.name) for m in pkgutil.walk_packages(formulas.__path__, "formulas.")]
    found = {x for module in modules for x in vars(module).values() if isinstance(x, ClosedForm)}
    assert found == set(INSIDE)


@ALL
def test_compiled_function_equals_exact_arithmetic(form):
    exact = sp.N(form.exact(**INSIDE[form]), 30)
    assert form(**INSIDE[form]) == pytest.approx(float(exact), rel=1e-12)


@ALL
def test_arrays_equal_scalars(form):
    arrays = {name: np.full((2, 1), float(x)) for name, x in INSIDE[form].items()}
    result = form(**arrays)
    assert result.shape == (2, 1)
    np.testing.assert_allclose(result, form(**INSIDE[form]), rtol=1e-14)


@ALL
def test_substituted_numbers_evaluate_to_the_result_shown(form):
    left, right, equal = sides(form.substituted(**INSIDE[form]))
    shown = value(right)
    assert shown == pytest.approx(form(**INSIDE[form]), rel=5e-6)
    if equal:
        assert value(left) == pytest.approx(shown, rel=1e-11)
    else:
        assert f"{value(left):.6g}" == f"{shown:.6g}"


@given(rate=st.floats(1e-6, 1e4), load=st.floats(0.01, 0.999), digits=st.integers(2, 8))
@settings(max_examples=60, deadline=None)
def test_substituted_numbers_hold_for_any_numbers(rate, load, digits):
    left, right, _ = sides(md1.MEAN_TTFT.substituted(rate=rate, service_time=load / rate, digits=digits))
    assert f"{value(left):.{digits}g}" == f"{value(right):.{digits}g}"


@ALL
def test_derivation_is_drawn_in_the_formulas_own_notation(form):
    for step in form.steps:
        drawn = form.draw(step.equation)
        assert not any(name in drawn for name in ("service_{", "mean_{", "rate", "wait_{", "False"))


@pytest.mark.parametrize("form", [f for f in INSIDE if f not in STEPWISE], ids=lambda f: f.name)
def test_elasticity_is_the_relative_slope(form):
    at = {name: float(x) for name, x in INSIDE[form].items()}
    for name, x in at.items():
        if x == 0 or name in {"tp", "kv_shards"}:  # counts: no slope to speak of
            continue
        step = 1e-6 * (1 - x if name == "level" else x)
        up, down = (form(**{**at, name: x + s}) for s in (step, -step))
        slope = (up - down) / (2 * step) * x / form(**at)
        assert form.elasticity(name)(**at) == pytest.approx(slope, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("form", STEPWISE, ids=lambda f: f.name)
def test_elasticity_of_a_whole_number_is_that_of_what_it_is_rounded_from(form):
    slopes = [form.elasticity(name)(**INSIDE[form]) for name in INSIDE[form]]
    assert slopes == [1.0, -1.0]


def test_inverse_goes_back():
    wait = md1.MEAN_WAIT(rate=16, service_time=0.05)
    inverse = md1.MEAN_WAIT.inverse("rate")
    assert inverse(mean_wait=wait, service_time=0.05) == pytest.approx(16, rel=1e-14)
    assert inverse is md1.MEAN_WAIT.inverse("rate")


def test_names_are_checked():
    with pytest.raises(TypeError, match="needs service_time"):
        md1.MEAN_WAIT(rate=1)
    with pytest.raises(TypeError, match="does not know speed"):
        md1.MEAN_WAIT(rate=1, service_time=0.1, speed=3)
    with pytest.raises(TypeError, match="does not know speed"):
        md1.MEAN_WAIT.solve_for("speed")


@pytest.mark.parametrize("rate", [20.0, 25.0])
def test_outside_the_domain_a_number_is_a_sentence(rate):
    with pytest.raises(DomainError, match=r"^Unstable: .*\.$"):
        md1.MEAN_WAIT(rate=rate, service_time=0.05)
    assert md1.MEAN_WAIT.violations(rate=rate, service_time=0.05) == (pk.UNSTABLE,)


def test_outside_the_domain_an_element_is_nan():
    waits = md1.MEAN_WAIT(rate=np.array([16.0, 20.0, 25.0, -1.0]), service_time=0.05)
    np.testing.assert_array_equal(np.isnan(waits), [False, True, True, True])


def test_negative_and_endless_values_are_refused():
    with pytest.raises(DomainError, match="cannot be negative"):
        md1.MEAN_WAIT(rate=-1, service_time=0.05)
    with pytest.raises(DomainError, match="no finite value"):
        step_time.COMPUTE_TIME(flops=1, compute_efficiency=0, peak_flops=1, tp=1)


def test_python_float_out():
    assert type(md1.MEAN_WAIT(rate=np.float64(16), service_time=0.05)) is float
    assert type(md1.MEAN_WAIT(rate=16, service_time=0)) is float


def test_exact_takes_decimals_and_fractions():
    assert md1.MEAN_WAIT.exact(rate=16, service_time="0.05") == sp.Rational(1, 10)
    assert md1.MEAN_WAIT.exact(rate=16, service_time=Fraction(1, 20)) == sp.Rational(1, 10)


def test_every_symbol_needs_a_variable():
    x = variable("x", "x", "", "a number")
    with pytest.raises(ValueError, match="no variable describes y"):
        ClosedForm("sum", x, x.symbol + sp.Symbol("y"), (x,), "none")


def test_negative_numbers_are_parenthesized():
    x = variable("x", "x", "", "a number", real=True)
    square = ClosedForm("square", variable("y", "y", "", "a number", real=True), 1 - 2 * x.symbol**2, (x,), "none")
    assert square.substituted(x=-3e-6, digits=13) == (
        r"y = 1 - 2 \cdot \left(-3 \times 10^{-6}\right)^{2} = 0.999999999982"
    )
    assert square.latex() == "y = 1 - 2 x^{2}"


def test_tidy_keeps_the_value():
    x, y = sp.symbols("x y")
    for expression in (-y / (x - 1) ** 2, y / (2 * x - 2), (y - 1) / (y * (x - 3) ** 3)):
        assert sp.simplify(tidy(expression) - expression) == 0
