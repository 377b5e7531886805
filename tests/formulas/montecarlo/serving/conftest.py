import pytest

from formulas.montecarlo.serving import AffineStep, LargestOf
from formulas.step_time import Machine, StepLoad, attended_pairs, attention_flops, matmul_flops, step_time

PARAMS, LAYERS, HEADS, HEAD_DIM, KV_TOKEN_BYTES, HIDDEN = 7_504_658_432, 32, 32, 128, 131_072, 4096
H100 = Machine(989e12, 3.35e12, 1, None, 0.6, 0.8, 2e-6, 1e-3)


def llama_step(prompt, cached, decoding, context):
    """Llama-3.1-8B in BF16 on an H100, by the course's assumptions."""
    pairs = attended_pairs(prompt, cached) + context
    flops = matmul_flops(PARAMS, prompt + decoding) + attention_flops(LAYERS, HEADS, HEAD_DIM, HEAD_DIM, pairs)
    load = StepLoad(flops, 2 * PARAMS, KV_TOKEN_BYTES * (cached + context), 8, prompt + decoding, HIDDEN, LAYERS)
    return step_time(load, H100)


@pytest.fixture(scope="session")
def llama():
    """The same step time in its fast form."""
    return LargestOf((
        AffineStep.of(lambda *step: llama_step(*step).compute_s + H100.overhead_s),
        AffineStep.of(lambda *step: llama_step(*step).memory_s + H100.overhead_s),
    ))  # fmt: skip


@pytest.fixture(scope="session")
def llama_exactly():
    return lambda *step: llama_step(*step).total_s
