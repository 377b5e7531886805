r"""Mean time to first token of n accelerators, used as a tensor, as a pipeline, or as n separate replicas.

Prompts of one length arrive at random. Each way is then M/D/1 with a service time of its own:

* tensor parallel: every prompt takes :math:`D/K` on all accelerators together;
* pipeline parallel: a prompt passes n stages of :math:`D/n` each and waits for the first alone, since prompts
  leave it no faster than the next stage takes them (Friedman 1965, which covers uneven stages too);
* replicas: each serves a random share :math:`R/n` of the prompts.

DistServe's equations 1 to 3 are these at n = 2. All of it needs equal prompts:
:mod:`formulas.parallelism.tandem` has what unequal ones cost a pipeline, and :data:`CHUNKED_MEAN_TTFT` how
chunks of one size bring the formula back.
"""

from __future__ import annotations

import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, at_most, equation, less, variable
from formulas.queueing import md1
from formulas.queueing import pollaczek_khinchine as pk

RATE, SERVICE, TTFT = md1.RATE, md1.SERVICE, md1.TTFT
SPEEDUP = variable("speedup", "K", "", "speedup of a prompt by tensor parallelism")
GPUS = variable("gpus", "n", "", "accelerators")
BOTTLENECK = variable("bottleneck_time", "D_{m}", "s", "time of the slowest stage")
LATENCY = variable("latency", "D_{s}", "s", "time of a prompt through all stages, hops included, without any wait")
CAPACITY = variable("capacity", r"R_{\max}", "1/s", "rate that is never reached")
STAGES = variable("stages", "m", "", "pipeline stages")
CHUNK_TIME = variable("chunk_time", "d", "s", "time of one chunk in one stage")
MEAN_CHUNKS = variable("mean_chunks", "E[X]", "", "mean number of chunks in a prompt")
SECOND_CHUNKS = variable("chunks_second_moment", "E[X^{2}]", "", "second moment of the number of chunks in a prompt")

_R, _D, _K, _N = (v.symbol for v in (RATE, SERVICE, SPEEDUP, GPUS))
_M, _L = BOTTLENECK.symbol, LATENCY.symbol
_STAGES, _CHUNK, _X1, _X2 = (v.symbol for v in (STAGES, CHUNK_TIME, MEAN_CHUNKS, SECOND_CHUNKS))
_DISTSERVE = "DistServe (OSDI 2024), section 3.1, equation"
_FRIEDMAN = "Friedman, Operations Research 13 (1965) 121"
_WHOLE = Condition(at_most(1, _N), "There is at least one accelerator.")
_MENTIONED = (*md1.MEAN_TTFT.arguments, *md1.MEAN_TTFT.mentions, BOTTLENECK, LATENCY)


def _stable(load: sp.Expr) -> Condition:
    return Condition(less(load, 1), pk.UNSTABLE)


def _stages_steps() -> tuple[Step, ...]:
    wait = md1.MEAN_WAIT.expression.subs(_D, _M)
    return (
        *md1.MEAN_WAIT.steps,
        Step(
            "With constant stage times a prompt waits as long, all in all, as it would for the slowest stage "
            "alone, wherever that stands.",
            equation(md1.MEAN.symbol, wait),
        ),
        Step("The first token comes after that wait and the time of every stage.", _ttft(STAGES_MEAN_TTFT)),
    )


def _pipeline_steps() -> tuple[Step, ...]:
    return (
        *_stages_steps(),
        Step("Even stages take a share of 1/n each.", equation(_M, _D / _N)),
        Step("Together they take as long as one accelerator would.", equation(_L, _D)),
        Step("Both put in.", _ttft(PIPELINE_MEAN_TTFT)),
    )


def _tensor_steps() -> tuple[Step, ...]:
    return (
        *md1.MEAN_TTFT.steps,
        Step("All accelerators serve a prompt together, in D / K.", _ttft(TENSOR_MEAN_TTFT)),
    )


def _replicas_steps() -> tuple[Step, ...]:
    return (
        *md1.MEAN_TTFT.steps,
        Step("A random share of a Poisson stream is one too: each replica has the rate R / n.",
             _ttft(REPLICAS_MEAN_TTFT)),
    )  # fmt: skip


def _chunked_steps() -> tuple[Step, ...]:
    moments = {pk.MEAN_SERVICE.symbol: _CHUNK * _X1, pk.SECOND_MOMENT.symbol: _CHUNK**2 * _X2}
    return (
        *pk.MEAN_WAIT.steps,
        Step(
            "A prompt of X chunks is X equal jobs that arrive together, and equal jobs wait for one stage only: "
            "there, it is one service of X d.",
            equation(md1.MEAN.symbol, pk.MEAN_WAIT.expression.subs(moments)),
        ),
        Step(
            "The first token comes after the wait, the prompt's X chunks in the first stage, "
            "and the last chunk's d in each of the others.",
            _ttft(CHUNKED_MEAN_TTFT),
        ),
    )


def _ttft(form: ClosedForm) -> sp.Eq:
    return equation(TTFT.symbol, form.expression)


STAGES_MEAN_TTFT = ClosedForm(
    "mean time to first token of a pipeline, stage by stage",
    TTFT,
    _L + md1.MEAN_WAIT.expression.subs(_D, _M),
    (RATE, BOTTLENECK, LATENCY),
    f"{_DISTSERVE} 2, its general form; {_FRIEDMAN}: any constant stage times",
    (
        _stable(_R * _M),
        Condition(at_most(_M, _L), "The slowest stage is part of the whole: it cannot take longer."),
    ),
    _stages_steps,
    _MENTIONED,
)
"""Pipeline of any stages: `latency` is their sum and the hops between them, `bottleneck_time` the slowest.

Examples
--------
>>> STAGES_MEAN_TTFT(rate=8, bottleneck_time=0.05, latency=0.1)
0.1166667
"""

PIPELINE_MEAN_TTFT = ClosedForm(
    "mean time to first token, pipeline parallel",
    TTFT,
    _D + _R * _D**2 / (2 * _N * (_N - _R * _D)),
    (RATE, SERVICE, GPUS),
    f"{_DISTSERVE} 2 at n = 2; {_FRIEDMAN}",
    (_stable(_R * _D / _N), _WHOLE),
    _pipeline_steps,
    _MENTIONED,
)
"""Pipeline of n even stages without hops [s].

Examples
--------
>>> PIPELINE_MEAN_TTFT(rate=14, service_time=0.1, gpus=2)
0.1583333
"""

TENSOR_MEAN_TTFT = ClosedForm(
    "mean time to first token, tensor parallel",
    TTFT,
    _D / _K + _R * _D**2 / (2 * _K * (_K - _R * _D)),
    (RATE, SERVICE, SPEEDUP),
    f"{_DISTSERVE} 3",
    (_stable(_R * _D / _K),),
    _tensor_steps,
    _MENTIONED,
)
"""All accelerators on every prompt, K times as fast as one [s].

Examples
--------
>>> TENSOR_MEAN_TTFT(rate=14, service_time=0.1, speedup=1.6)
0.28125
"""

REPLICAS_MEAN_TTFT = ClosedForm(
    "mean time to first token of separate replicas",
    TTFT,
    _D + _R * _D**2 / (2 * (_N - _R * _D)),
    (RATE, SERVICE, GPUS),
    f"{_DISTSERVE} 1 with the rate divided by n, as in section 3.2",
    (_stable(_R * _D / _N), _WHOLE),
    _replicas_steps,
    _MENTIONED,
)
"""Each accelerator alone, prompts sent to one of them at random [s].

Examples
--------
>>> REPLICAS_MEAN_TTFT(rate=8, service_time=0.1, gpus=2)
0.1333333
"""

PIPELINE_CAPACITY = ClosedForm(
    "capacity, pipeline parallel",
    CAPACITY,
    _N / _D,
    (SERVICE, GPUS),
    "One prompt per stage time D / n; separate replicas have the same capacity",
    (_WHOLE,),
)

TENSOR_CAPACITY = ClosedForm(
    "capacity, tensor parallel",
    CAPACITY,
    _K / _D,
    (SERVICE, SPEEDUP),
    "One prompt per service time D / K",
)

CHUNKED_MEAN_TTFT = ClosedForm(
    "mean time to first token of a pipeline that works on chunks of one size",
    TTFT,
    _R * _CHUNK**2 * _X2 / 2 / (1 - _R * _CHUNK * _X1) + _CHUNK * _X1 + (_STAGES - 1) * _CHUNK,
    (RATE, CHUNK_TIME, MEAN_CHUNKS, SECOND_CHUNKS, STAGES),
    f"Pollaczek-Khinchine for prompts of X equal chunks; {_FRIEDMAN}",
    (
        _stable(_R * _CHUNK * _X1),
        Condition(at_most(_X1**2, _X2), "A second moment is at least the square of the mean."),
        Condition(at_most(1, _STAGES), "A pipeline has at least one stage."),
    ),
    _chunked_steps,
    (*pk.MEAN_WAIT.arguments, *pk.MEAN_WAIT.mentions, md1.MEAN),
)
"""Prompts of different lengths, cut into chunks of one size that take `chunk_time` in every stage [s].

The attention to earlier chunks, which makes later chunks a little slower, is left out. The moments of the
number of chunks come from :func:`formulas.parallelism.tandem.chunk_moments`.

Examples
--------
>>> CHUNKED_MEAN_TTFT(rate=8, chunk_time=0.05, mean_chunks=1, chunks_second_moment=1, stages=2)
0.1166667
"""
