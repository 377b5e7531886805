import tomllib
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def published():
    """Published figures of speculative decoding."""
    return tomllib.loads((Path(__file__).parents[1] / "fixtures" / "speculative.toml").read_text())
