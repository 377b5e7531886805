"""Serving from step to step: what each request waits for, and what it costs the others.

An event simulation of instances that prefill, decode or do both, with any step time as their clock.
"""

from formulas.montecarlo.serving.clock import AffineStep, Clock, LargestOf, Run, StepTime
from formulas.montecarlo.serving.deployments import KvLink, simulate, simulate_disaggregated
from formulas.montecarlo.serving.goodput import Targets, simulated_goodput
from formulas.montecarlo.serving.instance import InstanceSettings, InstanceTotals, Kind
from formulas.montecarlo.serving.served import Served
from formulas.montecarlo.serving.workload import DrawnLengths, Lengths, Workload, gamma_workload, poisson_workload

__all__ = [
    "AffineStep", "Clock", "DrawnLengths", "InstanceSettings", "InstanceTotals", "Kind", "KvLink", "LargestOf", "Lengths", "Run",
    "Served", "StepTime", "Targets", "Workload", "gamma_workload", "poisson_workload", "simulate", "simulate_disaggregated",
    "simulated_goodput",
]  # fmt: skip
