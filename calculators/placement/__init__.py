"""Which degrees for prefill and decode on a cluster, how many of each, and where they sit."""

from calculators.placement.check import check
from calculators.placement.cluster import PlacementInputs
from calculators.placement.compute import compute
from calculators.placement.wording import answer
from calculators.room import Calculator

ROOM = Calculator(
    name="placement",
    title="Placement",
    question="Which tensor and pipeline degrees for prefill and for decoding on this cluster, how many instances of each, and "
    "where do they sit?",
    icon=":material/grid_view:",
    section="Sizing",
    inputs=PlacementInputs,
    row=("target_rate", "network", "nodes", "node_gpus"),
    compute=compute,
    answer=answer,
    check=check,
)
"""The catalog's entry."""
