"""The front page: what Headroom is for, and where each question is answered."""

from calculators.room import Room
from calculators.scenario import Scenario

ROOM = Room(
    name="home",
    title="Headroom",
    question="How much hardware do your users need to get the first token, and each next one, in time?",
    icon=":material/home:",
    inputs=Scenario,
    is_front=True,
)
"""The catalog's entry."""
