"""A server of the real app on a free port of this machine, for as long as a measurement takes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.report import NotMeasured

ROOT = Path(__file__).parents[1]
PATIENCE_S = 60


@contextmanager
def serve(launcher: Sequence[str] = ("streamlit",)) -> Iterator[str]:
    """Run ``python -m streamlit run app.py`` and yield its address, ``127.0.0.1:port``, once it answers.

    Parameters
    ----------
    launcher
        What stands for ``streamlit`` in that command.

    Raises
    ------
    NotMeasured
        If the server ends or does not answer within a minute.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = {"address": "127.0.0.1", "port": address.split(":")[1], "headless": "true", "fileWatcherType": "none"}
    command = [sys.executable, "-m", *launcher, "run", "app.py"]
    command += ["--client.showErrorDetails", "full"]  # so that an error of the app is named in the report
    command += [word for name, value in options.items() for word in (f"--server.{name}", value)]
    with subprocess.Popen(  # noqa: S603 - the project's own app
        command, cwd=ROOT, env=_writing(compiled()), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            _wait_until_healthy(server, address)
            yield address
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


@cache
def compiled() -> TemporaryDirectory[str]:
    """Return a folder with what the app imports, compiled, as Python has it from the second start on.

    An environment that was copied, or whose Python may not write, compiles two thousand modules at every start; what is
    compiled in the same process was also seen to run slower.
    """
    folder = TemporaryDirectory(prefix="headroom-compiled-")
    imports = [sys.executable, "-c", "import streamlit.web.bootstrap, app"]
    subprocess.run(imports, cwd=ROOT, env=_writing(folder), capture_output=True, check=True)  # noqa: S603 - our own app
    return folder


def _writing(compiled: TemporaryDirectory[str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": compiled.name}


def _wait_until_healthy(server: subprocess.Popen[bytes], address: str) -> None:
    deadline = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < deadline:
        if server.poll() is not None:
            raise NotMeasured(f"the server ended with status {server.returncode} before it answered")
        try:
            with urllib.request.urlopen(f"http://{address}/_stcore/health", timeout=5):
                return
        except OSError:
            time.sleep(0.01)
    raise NotMeasured(f"the server did not answer within {PATIENCE_S} s")
