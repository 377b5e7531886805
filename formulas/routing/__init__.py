"""What a router is worth: waits behind each kind at one rate, and the instances that each needs for a target."""

from formulas.routing.answers import Answer, Method, answer, compare_routers
from formulas.routing.sizing import Need, instances_needed, needs_by_router

__all__ = ["Answer", "Method", "Need", "answer", "compare_routers", "instances_needed", "needs_by_router"]
