r"""Time of one step of a model on one instance: the larger of arithmetic and memory traffic, plus the rest.

.. math:: \max\left(\frac{F}{e_c P n}, \frac{1}{e_m B}\left(\frac{w}{n} + \frac{v}{\min(n, h)}\right)\right)
          + 2 L \left(\frac{2(n-1)}{n} \frac{2 t d}{e_l b} + l\right) + o

A step processes prompt tokens and decoding sequences alike; what they cost is counted by
:func:`matmul_flops` and :func:`attention_flops` and by the caller's bytes. The efficiencies, the latency and
the overhead are assumptions, to be chosen or fitted; everything else is a property of model and machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from formulas.closed_form import ClosedForm, Condition, at_most, variable

FLOPS = variable("flops", "F", "FLOP", "arithmetic of the step")
PEAK = variable("peak_flops", "P", "FLOP/s", "dense peak rate of one accelerator")
COMPUTE_EFFICIENCY = variable("compute_efficiency", "e_{c}", "", "share of the peak rate that is reached")
RANKS = variable("tp", "n", "", "tensor-parallel ranks")
WEIGHT_BYTES = variable("weight_bytes", "w", "B", "bytes of weights read, all ranks together")
KV_BYTES = variable("kv_bytes", "v", "B", "bytes of cache read and written, counted once")
KV_SHARDS = variable("kv_shards", "h", "", "largest number of ranks that the cache can be split over")
BANDWIDTH = variable("memory_bandwidth", "B", "B/s", "memory bandwidth of one accelerator")
MEMORY_EFFICIENCY = variable("memory_efficiency", "e_{m}", "", "share of the memory bandwidth that is reached")
TOKENS = variable("tokens", "t", "", "tokens in the step")
HIDDEN = variable("hidden", "d", "", "hidden size")
LAYERS = variable("layers", "L", "", "layers")
LINK = variable("link_bytes_s", "b", "B/s", "link bandwidth of one accelerator, one direction")
LINK_EFFICIENCY = variable("link_efficiency", "e_{l}", "", "share of the link bandwidth that is reached")
LATENCY = variable("allreduce_latency_s", "l", "s", "latency of one all-reduce")
OVERHEAD = variable("overhead_s", "o", "s", "overhead of a step")
PARAMETERS = variable("active_params", "P_{a}", "", "parameters in matrix products that a token meets")
PAIRS = variable("pairs", "N", "", "pairs of a new token and a token that it attends to", nonnegative=True)
HEADS = variable("heads", "H", "", "query heads of a layer")
QK_DIM = variable("qk_head_dim", "d_{k}", "", "length of a head's queries and keys")
V_DIM = variable("v_head_dim", "d_{v}", "", "length of a head's values")
MATMUL = variable("matmul_flops", "F_{m}", "FLOP", "arithmetic of the matrix products")
ATTENTION = variable("attention_flops", "F_{a}", "FLOP", "arithmetic of attention")
COMPUTE = variable("compute_s", "t_{c}", "s", "time of the arithmetic")
MEMORY = variable("memory_s", "t_{m}", "s", "time of the memory traffic")
COLLECTIVES = variable("collectives_s", "t_{r}", "s", "time of the all-reduces")
TOTAL = variable("total_s", "t", "s", "time of the step")

_F, _P, _EC, _N, _W, _V, _H, _B, _EM, _T, _D, _L, _LINK, _EL, _LAT, _O = (
    v.symbol
    for v in (
        FLOPS, PEAK, COMPUTE_EFFICIENCY, RANKS, WEIGHT_BYTES, KV_BYTES, KV_SHARDS, BANDWIDTH,
        MEMORY_EFFICIENCY, TOKENS, HIDDEN, LAYERS, LINK, LINK_EFFICIENCY, LATENCY, OVERHEAD,
    )
)  # fmt: skip
_WHOLE = Condition(at_most(1, _N), "An instance has at least one rank.")
_ROOFLINE = "Williams, Waterman, Patterson, Roofline (CACM 52, 2009)"

MATMUL_FLOPS = ClosedForm(
    "arithmetic of the matrix products",
    MATMUL,
    2 * PARAMETERS.symbol * _T,
    (PARAMETERS, TOKENS),
    "A multiplication and an addition per parameter and token",
)

ATTENTION_FLOPS = ClosedForm(
    "arithmetic of attention",
    ATTENTION,
    2 * (QK_DIM.symbol + V_DIM.symbol) * HEADS.symbol * _L * PAIRS.symbol,
    (LAYERS, HEADS, QK_DIM, V_DIM, PAIRS),
    "The scores and the weighted values of each pair; a prompt of p tokens after h cached ones has p h + p²/2 pairs",
)

COMPUTE_TIME = ClosedForm(
    "time of the arithmetic",
    COMPUTE,
    _F / (_EC * _P * _N),
    (FLOPS, COMPUTE_EFFICIENCY, PEAK, RANKS),
    _ROOFLINE,
    (_WHOLE,),
)

MEMORY_TIME = ClosedForm(
    "time of the memory traffic",
    MEMORY,
    (_W / _N + _V / sp.Min(_N, _H)) / (_EM * _B),
    (WEIGHT_BYTES, KV_BYTES, MEMORY_EFFICIENCY, BANDWIDTH, RANKS, KV_SHARDS),
    _ROOFLINE + "; each rank reads its share of the weights, and of the cache as far as its heads can be split",
    (_WHOLE,),
)

ALLREDUCE_TIME = ClosedForm(
    "time of the all-reduces",
    COLLECTIVES,
    2 * _L * ((_N - 1) / _N * 4 * _T * _D / (_EL * _LINK) + _LAT),
    (LAYERS, RANKS, TOKENS, HIDDEN, LINK_EFFICIENCY, LINK, LATENCY),
    "Megatron-LM (arXiv 1909.08053), section 3: two all-reduces a layer; a ring moves 2(n-1)/n of the"
    " activations, two bytes each",
    (Condition(at_most(2, _N), "A single rank has nothing to reduce."),),
)

STEP_TIME = ClosedForm(
    "time of a step",
    TOTAL,
    sp.Max(COMPUTE.symbol, MEMORY.symbol) + COLLECTIVES.symbol + _O,
    (COMPUTE, MEMORY, COLLECTIVES, OVERHEAD),
    _ROOFLINE + ", plus the communication and overhead that it does not hide",
)


@dataclass(frozen=True)
class StepLoad:
    """What a step has to do.

    Parameters
    ----------
    flops
        Arithmetic, all ranks together [FLOP].
    weight_bytes
        Weights read, all ranks together [B].
    kv_bytes
        Cache read, and written if the caller counts that, without replication [B].
    kv_shards
        Largest number of ranks that the cache splits over: the KV heads, or 1 for a latent; where layers differ,
        the cache over what one rank reads of it [].
    tokens
        Tokens whose activations are reduced over the ranks [].
    hidden, layers
        Shape of the model [].

    Notes
    -----
    All but the shape of the model may be arrays.
    """

    flops: Any
    weight_bytes: Any
    kv_bytes: Any
    kv_shards: Any
    tokens: Any
    hidden: int
    layers: int


@dataclass(frozen=True)
class Machine:
    """What it runs on, and how well.

    Parameters
    ----------
    peak_flops
        Dense peak of one accelerator in the type of the arithmetic [FLOP/s].
    memory_bandwidth
        Of one accelerator [B/s].
    tp
        Tensor-parallel ranks [].
    link_bytes_s
        Of one accelerator, one direction; None for a single rank [B/s].
    compute_efficiency, memory_efficiency, link_efficiency
        Shares reached, in (0, 1] [].
    allreduce_latency_s
        Latency of one all-reduce [s].
    overhead_s
        Overhead of a step [s].
    """

    peak_flops: float
    memory_bandwidth: float
    tp: int
    link_bytes_s: float | None
    compute_efficiency: float
    memory_efficiency: float
    allreduce_latency_s: float
    overhead_s: float
    link_efficiency: float = 1.0

    def __post_init__(self) -> None:
        if self.tp < 1:
            raise ValueError("An instance has at least one rank.")
        if self.tp > 1 and self.link_bytes_s is None:
            raise ValueError("Several ranks need a link between them.")


@dataclass(frozen=True)
class StepTime:
    """Time of a step and what it is made of [s]; `weights_s` and `kv_s` add up to `memory_s`."""

    compute_s: Any
    weights_s: Any
    kv_s: Any
    memory_s: Any
    collectives_s: Any
    overhead_s: float
    total_s: Any
    bound: Any


def step_time(load: StepLoad, machine: Machine) -> StepTime:
    """Time of a step.

    Parameters
    ----------
    load
        What it has to do.
    machine
        What it runs on.

    Returns
    -------
    StepTime
        Floats, or arrays where the load has arrays; `bound` is "compute" or "memory", the larger of the two.

    Examples
    --------
    >>> h100 = Machine(989e12, 3.35e12, 1, None, 0.6, 0.8, 2e-6, 1e-3)
    >>> load = StepLoad(matmul_flops(7504658432, 32), 2 * 7504658432, 32 * 700 * 131072, 8, 32, 4096, 32)
    >>> step = step_time(load, h100)
    >>> step.total_s, step.bound
    (0.0076960, 'memory')
    """
    memory = {
        "memory_efficiency": machine.memory_efficiency,
        "memory_bandwidth": machine.memory_bandwidth,
        "tp": machine.tp,
        "kv_shards": load.kv_shards,
    }
    compute_s = COMPUTE_TIME(
        flops=load.flops,
        compute_efficiency=machine.compute_efficiency,
        peak_flops=machine.peak_flops,
        tp=machine.tp,
    )
    weights_s = MEMORY_TIME(weight_bytes=load.weight_bytes, kv_bytes=0, **memory)
    kv_s = MEMORY_TIME(weight_bytes=0, kv_bytes=load.kv_bytes, **memory)
    memory_s = weights_s + kv_s
    collectives_s = _collectives(load, machine)
    total_s = STEP_TIME(
        compute_s=compute_s, memory_s=memory_s, collectives_s=collectives_s, overhead_s=machine.overhead_s
    )
    by_compute = np.asarray(compute_s) >= memory_s
    bound = np.where(by_compute, "compute", "memory")
    return StepTime(
        compute_s, weights_s, kv_s, memory_s, collectives_s, machine.overhead_s, total_s,
        bound if bound.ndim else str(bound),
    )  # fmt: skip


def _collectives(load: StepLoad, machine: Machine) -> Any:
    if machine.tp == 1:
        return 0.0 if np.ndim(load.tokens) == 0 else np.zeros(np.shape(load.tokens))
    return ALLREDUCE_TIME(
        layers=load.layers,
        tp=machine.tp,
        tokens=load.tokens,
        hidden=load.hidden,
        link_efficiency=machine.link_efficiency,
        link_bytes_s=machine.link_bytes_s,
        allreduce_latency_s=machine.allreduce_latency_s,
    )


def attended_pairs(new_tokens: Any, cached_tokens: Any, window: Any = None) -> Any:
    r"""Pairs of a new token and a token that it attends to.

    Parameters
    ----------
    new_tokens
        Tokens processed in this step, p [].
    cached_tokens
        Tokens before them, h [].
    window
        Length of a sliding window, or None for full attention [].

    Returns
    -------
    float or ndarray
        :math:`\int_h^{h+p} \min(x, w)\,dx`, which is :math:`p h + p^2/2` without a window [].

    Notes
    -----
    The integral counts half of :math:`p^2`, where the sum over whole tokens has :math:`p(p+1)/2`.

    Examples
    --------
    >>> attended_pairs(512, 0)
    131072.0
    >>> attended_pairs(4, 6, window=8)
    30.0
    """
    new, cached = np.asarray(new_tokens, dtype=float), np.asarray(cached_tokens, dtype=float)
    if window is None:
        pairs = new * cached + new**2 / 2
    else:
        limit = np.asarray(window, dtype=float)
        start, end = np.minimum(cached, limit), np.minimum(cached + new, limit)
        pairs = (end**2 - start**2) / 2 + limit * (new - (end - start))
    return pairs if pairs.ndim else float(pairs)


def matmul_flops(active_params: Any, tokens: Any) -> Any:
    """Arithmetic of the matrix products: a multiplication and an addition per parameter and token [FLOP].

    Parameters
    ----------
    active_params
        Parameters in matrix products that a token meets [].
    tokens
        Tokens [].

    Examples
    --------
    >>> matmul_flops(8e9, 512)
    8.192e+12
    """
    return MATMUL_FLOPS(active_params=active_params, tokens=tokens)


def attention_flops(layers: Any, heads: Any, qk_head_dim: Any, v_head_dim: Any, pairs: Any) -> Any:
    """Arithmetic of attention: the scores and the weighted values of each pair [FLOP].

    Parameters
    ----------
    layers, heads
        Layers that attend this way, and query heads in each [].
    qk_head_dim, v_head_dim
        Length of a head's queries and keys, and of its values [].
    pairs
        Pairs attended, from :func:`attended_pairs` [].

    Examples
    --------
    >>> attention_flops(32, 32, 128, 128, attended_pairs(512, 0))
    68719476736.0
    """
    return ATTENTION_FLOPS(layers=layers, heads=heads, qk_head_dim=qk_head_dim, v_head_dim=v_head_dim, pairs=pairs)
