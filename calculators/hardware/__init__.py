"""The hardware database: every accelerator, link and model with its sources, and the rooflines."""

from calculators.hardware.tables import HardwareInputs
from calculators.room import Room

ROOM = Room(
    name="hardware",
    title="Hardware and models",
    question="Which figures do the answers rest on, and where do they come from?",
    icon=":material/memory:",
    inputs=HardwareInputs,
    own_inputs="page",
)
"""The catalog's entry."""
