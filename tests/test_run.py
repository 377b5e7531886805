"""The entry point, run.py: its decisions, with nothing installed and no network."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import run

type Calls = list[tuple[str, ...]]
