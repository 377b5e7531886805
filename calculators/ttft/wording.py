"""The answer in a sentence and four numbers."""

from __future__ import annotations

from calculators import checks
from calculators.outputs import readable
from calculators.ttft.check import LECTURE_P99, LECTURE_UTILIZATION, TtftCheck
from calculators.ttft.compute import Sensitivity, TtftInputs, TtftResult, statistic
from formulas.queueing.md1 import wait_quantile

ICONS = {
    "meets": ":green[:material/check_circle:]",
    "misses": ":orange[:material/warning:]",
    "unstable": ":red[:material/trending_up:]",
    "too_slow_unloaded": ":red[:material/hourglass_disabled:]",
    "does_not_fit": ":red[:material/memory_alt:]",
}


def sentence(inputs: TtftInputs, result: TtftResult) -> str:
    """Return the answer to the page's question, in Markdown."""
    rate = f"{inputs.rate:g} requests/s"
    target = f"{inputs.ttft_slo_ms:g} ms"
    capacity = 1e3 / result.service_ms
    match result.verdict:
        case "meets":
            return (
                f"At {rate} the {statistic(inputs)} is **{_ms(result.target_ttft_ms)}**, within the target of {target}."
            )
        case "misses":
            return (
                f"At {rate} the {statistic(inputs)} is **{_ms(result.target_ttft_ms)}**, over the target of {target}: "
                f"use **{_instances(result)}**, or at most {result.max_rate:.4g} requests/s on one."
            )
        case "unstable":
            return (
                f"One instance serves less than {capacity:.4g} requests/s, and {rate} arrive: its queue grows without "
                f"end. **{_instances(result)}** meet the target of {target}."
            )
        case "too_slow_unloaded":
            return (
                f"One prompt alone takes **{_ms(result.service_ms)}**, and the target is {target}: no number of "
                "instances meets it."
            )
    return "The weights do not fit in memory: no number of these instances serves this model."


def answer(inputs: TtftInputs, result: TtftResult) -> str:
    """Return the answer with the icon of its verdict in front."""
    return f"{ICONS[result.verdict]} {sentence(inputs, result)}"


def _ms(value: float | None) -> str:
    return f"{value:.4g} ms" if value is not None else "–"


def _instances(result: TtftResult) -> str:
    return "1 instance" if result.instances == 1 else f"{result.instances:,} instances"


def metrics(inputs: TtftInputs, result: TtftResult) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the four numbers under the sentence."""
    name = statistic(inputs)
    return [
        (
            name[0].upper() + name[1:],
            _ms(result.target_ttft_ms),
            "Time from arrival to first token: the wait and the prompt's own service. Exact for M/D/1.",
        ),
        (
            "Utilization",
            f"{result.utilization:.4g}",
            f"Share of the time that the instance is busy. One prompt takes {readable(result.service_ms)} ms.",
        ),
        (
            "Highest rate in target",
            f"{result.max_rate:.4g} /s" if result.max_rate else "–",
            "Requests per second that one instance takes within the target.",
        ),
        (
            "Instances needed",
            f"{result.instances:,}" if result.instances else "–",
            "For this rate, when each request goes to an instance at random.",
        ),
    ]


def agreement(check: TtftCheck) -> str:
    """Return in plain words whether the simulation supports the formula, in Markdown."""
    needed = (
        f"At utilization {check.utilization:.4g} the mean wait is known to 1 % after about "
        f"{_rounded(check.needed_for_one_percent)} requests; this run knows it to {check.half_width_percent:.2g} %."
    )
    method = checks.method(check.customers, check.warm_up, check.seed, len(check.rows))
    return f"{checks.verdict(check.rows)} {method} {needed}"


def _rounded(count: float) -> str:
    return f"{float(f'{count:.2g}'):,.0f}"


def on_short_runs(check: TtftCheck) -> str:
    """Return what the figure of short runs shows, in Markdown."""
    first = check.short_runs[0]
    return (
        f"A run that starts empty has not seen the worst yet. Half the runs of {first.customers:,} requests report a "
        f"P99 below {first.median_ms:.4g} ms; the exact P99 is {check.exact_p99_ms:.4g} ms. Dots are the median run, "
        "bars hold nine runs in ten. The lecture's own run was short too: its P99 at utilization "
        f"{LECTURE_UTILIZATION} is {LECTURE_P99:g} service times (section 4.3), and the exact one "
        f"{1 + wait_quantile(0.99, LECTURE_UTILIZATION):.5g}."
    )


def on_sensitivities(rows: tuple[Sensitivity, ...], name: str) -> str:
    """Return what matters most, in Markdown."""
    first = rows[0]
    direction = "longer" if first.elasticity > 0 else "shorter"
    return (
        f"**{first.label} matters most**: one percent more makes the {name} {abs(first.elasticity):.3g} % {direction}. "
        "Each bar is an elasticity: the percent change of the answer for one percent more of the input."
    )
