"""Several accelerators for one model: tensor parallel, pipeline parallel, or apart."""

from formulas.parallelism.crossovers import (
    CROSSOVER_LOAD,
    CROSSOVER_LOAD_TWO,
    CROSSOVER_RATE,
    STAGES_CROSSOVER_RATE,
    Crossover,
    crossover,
    crossover_rate,
    stages_crossover,
    stages_crossover_rate,
)
from formulas.parallelism.means import (
    CHUNKED_MEAN_TTFT,
    PIPELINE_CAPACITY,
    PIPELINE_MEAN_TTFT,
    REPLICAS_MEAN_TTFT,
    STAGES_MEAN_TTFT,
    TENSOR_CAPACITY,
    TENSOR_MEAN_TTFT,
)
from formulas.parallelism.percentiles import (
    bottleneck_and_latency,
    even_stages,
    pipeline_capacity,
    pipeline_mean,
    pipeline_quantile,
    replicas_quantile,
    tensor_quantile,
)
from formulas.parallelism.tandem import (
    Lognormal,
    TandemMean,
    chunk_moments,
    tandem_mean,
    tandem_mean_ttft,
    tandem_mean_wait,
)

__all__ = [
    "CHUNKED_MEAN_TTFT", "CROSSOVER_LOAD", "CROSSOVER_LOAD_TWO", "CROSSOVER_RATE", "PIPELINE_CAPACITY",
    "PIPELINE_MEAN_TTFT", "REPLICAS_MEAN_TTFT", "STAGES_CROSSOVER_RATE", "STAGES_MEAN_TTFT", "TENSOR_CAPACITY",
    "TENSOR_MEAN_TTFT", "Crossover", "Lognormal", "TandemMean", "bottleneck_and_latency", "chunk_moments",
    "crossover", "crossover_rate", "even_stages", "pipeline_capacity", "pipeline_mean", "pipeline_quantile",
    "replicas_quantile", "stages_crossover", "stages_crossover_rate", "tandem_mean", "tandem_mean_ttft",
    "tandem_mean_wait", "tensor_quantile",
]  # fmt: skip
