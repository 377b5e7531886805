import json
import tomllib
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="session")
def course():
    """Figures of the course that formulas alone reproduce."""
    return tomllib.loads((FIXTURES / "course_figures.toml").read_text())


@pytest.fixture(scope="session")
def md1_reference():
    """Utilization -> reference values of M/D/1, in units of the service time."""
    return json.loads((FIXTURES / "md1_reference.json").read_text())["md1"]


@pytest.fixture(scope="session")
def parallelism_reference():
    """Reference values of pipelines with unequal prompts, and of crossovers."""
    return json.loads((FIXTURES / "parallelism_reference.json").read_text())


@pytest.fixture(scope="session")
def many_servers_reference():
    """Reference values of many servers, in units of the service time."""
    return json.loads((FIXTURES / "many_servers_reference.json").read_text())


@pytest.fixture(scope="session")
def single_server():
    """Reference values of single-server queues with any prompts and arrivals, by model."""
    return json.loads((FIXTURES / "single_server_reference.json").read_text())
