"""People as the server sees them: WebSocket clients that speak Streamlit's protocol, on this machine only."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Benchmark, Figure, Goal, NotMeasured, quantile
from benchmarks.server import serve
from benchmarks.timed_streamlit import TIMINGS, read

PAGE = "ttft"
PEOPLE, THINK_S = 100, 2.0
THINK_ALONE_S = 0.3
PATIENCE_S = 30.0


def rates(start: int = 0) -> Iterator[float]:
    """Yield arrival rates, requests/s, no two in a row alike, all of them stable on the page as it opens.

    Examples
    --------
    >>> list(itertools.islice(rates(), 3))
    [30.0, 37.1, 44.2]
    """
    for count in itertools.count(start):
        yield round(30 + 7.1 * count % 30, 1)


class Session:
    """A browser's end of the conversation: it opens the page, remembers the widgets and types arrival rates."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._widgets: dict[str, Any] = {}
        self._places: dict[tuple[int, ...], str] = {}
        self._page_hash = ""
        self._figure = ""

    async def open(self) -> None:
        """Ask for the page and wait until it is drawn."""
        await self._run(page_name=PAGE)
        if not self._figure or self._rate is None:
            raise NotMeasured(f"the page {PAGE} drew no figure or no arrival rate")

    async def move(self, rate: float) -> float:
        """Type an arrival rate and return the time [s] until the script has finished and a new figure is here."""
        if self._rate is None:
            raise NotMeasured("the page has no arrival rate")
        self._rate.double_value = rate
        before, start = self._figure, time.perf_counter()
        await self._run(page_script_hash=self._page_hash, query_string=f"rate={rate:g}", widgets=self._widgets.values())
        if self._figure == before:
            raise NotMeasured("a new arrival rate brought no new figure")
        return time.perf_counter() - start

    @property
    def _rate(self) -> Any:
        return next((state for name, state in self._widgets.items() if name.endswith("-rate")), None)

    async def _run(self, widgets: Iterable[Any] = (), **state: Any) -> None:
        from streamlit.proto.BackMsg_pb2 import BackMsg
        from streamlit.proto.ClientState_pb2 import ClientState
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        request = BackMsg(rerun_script=ClientState(**state))
        request.rerun_script.widget_states.widgets.extend(widgets)
        await self._socket.send(request.SerializeToString())
        while True:
            message = ForwardMsg.FromString(await self._receive())
            match message.WhichOneof("type"):
                case "navigation":
                    self._page_hash = message.navigation.page_script_hash
                case "delta" if message.delta.WhichOneof("type") == "new_element":
                    self._see(message.delta.new_element, tuple(message.metadata.delta_path))
                case "session_event":
                    raise NotMeasured("the server reported an error of the script")
                case "script_finished" if message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    return

    async def _receive(self) -> bytes:
        import websockets

        try:
            message: bytes = await asyncio.wait_for(self._socket.recv(), PATIENCE_S)
        except TimeoutError:
            raise NotMeasured(f"the server said nothing for {PATIENCE_S:g} s") from None
        except websockets.ConnectionClosed as closed:
            raise NotMeasured(f"the server ended the session: {closed}") from None
        return message

    def _see(self, element: Any, place: tuple[int, ...]) -> None:
        match element.WhichOneof("type"):
            case "exception":
                raise NotMeasured(f"the page shows an error: {element.exception.message}")
            case "plotly_chart" if "ttft-against-rate" in element.plotly_chart.id:
                self._figure = element.plotly_chart.spec
            case "number_input" | "selectbox" | "slider" as kind:
                widget = getattr(element, kind)
                before = self._places.get(place)
                if before != widget.id:  # as the browser forgets a widget in whose place another one stands
                    self._widgets.pop(before or "", None)
                self._places[place] = widget.id
                self._remember(kind, widget)

    def _remember(self, kind: str, widget: Any) -> None:
        """Hold the state that the browser sends for a widget: its default, or what the script has set since."""
        from streamlit.proto.WidgetStates_pb2 import WidgetState

        if widget.id in self._widgets and not widget.set_value:
            return
        state = self._widgets[widget.id] = WidgetState(id=widget.id)
        match kind:
            case "slider":
                state.double_array_value.data.extend(widget.value if widget.set_value else widget.default)
            case "number_input" if widget.HasField("value" if widget.set_value else "default"):
                state.double_value = widget.value if widget.set_value else widget.default
            case "selectbox" if widget.HasField("raw_value" if widget.set_value else "default"):
                state.string_value = widget.raw_value if widget.set_value else widget.options[widget.default]


def _connect(address: str) -> Any:
    import websockets  # a requirement of Streamlit itself

    return websockets.connect(
        f"ws://{address}/_stcore/stream", subprotocols=[websockets.Subprotocol("streamlit")], max_size=None, proxy=None
    )


def measure_script(quick: bool) -> list[Figure]:
    """Time the script on the server while one person types rates."""
    moves = 10 if quick else 60
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "timings"
        os.environ[TIMINGS] = str(file)
        try:
            with serve(("benchmarks.timed_streamlit",)) as address:
                at_socket = asyncio.run(_alone(address, moves))
            scripts, collections = read(file)
        finally:
            del os.environ[TIMINGS]
    if len(scripts) < moves:
        raise NotMeasured(f"the clock saw {len(scripts)} runs of the script, not {moves}")
    (first, _), runs = scripts[0], scripts[-moves:]
    wall = [run[0] for run in runs]
    remark = (
        f"median of {moves} reruns, callbacks and script, clocked in the server; P95 {quantile(wall, 0.95):.3g} ms, "
        f"processor time {statistics.median(run[1] for run in runs):.3g} ms; the first run of the server took "
        f"{first:.3g} ms"
    )
    return [
        Figure(statistics.median(wall), remark),
        Figure(
            statistics.median(collections[-moves:]) if len(collections) >= moves else None,
            "Streamlit forces it while the session waits; app.py moves what is loaded out of its sight",
        ),
        Figure(
            1e3 * statistics.median(at_socket),
            f"median of the same {moves} reruns, from sending the new rate to the script's end, all messages received; "
            f"P95 {1e3 * quantile(at_socket, 0.95):.3g} ms",
        ),
    ]


async def _alone(address: str, moves: int) -> list[float]:
    async with _connect(address) as socket:
        session = Session(socket)
        await session.open()
        typed = rates()
        for _ in range(3):
            await session.move(next(typed))
        taken = []
        for _ in range(moves):
            await asyncio.sleep(THINK_ALONE_S)
            taken.append(await session.move(next(typed)))
        await asyncio.sleep(THINK_ALONE_S)  # the last collection comes after the last message
    return taken


def measure_load(quick: bool) -> list[Figure]:
    """Time the reruns of many people who each move the rate every two seconds."""
    seconds = 10.0 if quick else 30.0
    with serve() as address:
        results = asyncio.run(_crowd(address, seconds))
    taken = [each for result in results if isinstance(result, list) for each in result]
    errors = [result for result in results if not isinstance(result, list)]
    if not taken:
        raise NotMeasured(f"no session survived; the first error: {errors[0]}")
    remark = (
        f"P95 of {len(taken)} reruns at the socket in {seconds:g} s, median {1e3 * statistics.median(taken):.3g} ms, "
        f"{len(taken) / seconds:.0f} reruns/s; the clients shared the cores with the server"
    )
    first = f"; the first: {type(errors[0]).__name__} {errors[0]}" if errors else ""
    return [
        Figure(1e3 * quantile(taken, 0.95), remark),
        Figure(len(errors), f"sessions of {PEOPLE} that ended with an error{first}"),
    ]


async def _crowd(address: str, seconds: float) -> Sequence[list[float] | BaseException]:
    opened = asyncio.Barrier(PEOPLE)
    people = (_person(address, number, opened, seconds) for number in range(PEOPLE))
    return await asyncio.gather(*people, return_exceptions=True)


async def _person(address: str, number: int, opened: asyncio.Barrier, seconds: float) -> list[float]:
    """Arrive, wait until everyone is here, then think and move for the given time."""
    think = random.Random(number)  # noqa: S311 - thinking times, no secrets
    typed = rates(number)
    await asyncio.sleep(number * 0.1)
    async with _connect(address) as socket:
        session = Session(socket)
        try:
            await session.open()
        finally:
            await opened.wait()
        until = time.perf_counter() + seconds
        taken: list[float] = []
        while True:
            await asyncio.sleep(think.uniform(0.5, 1.5) * THINK_S)
            if time.perf_counter() > until:
                return taken
            taken.append(await session.move(next(typed)))


SCRIPT = Benchmark(
    "script",
    (
        Goal("script of the ttft page for each rerun, on the server", "ms", 15),
        Goal("garbage collection that Streamlit forces after it", "ms"),
        Goal("the same rerun as seen at the socket", "ms"),
    ),
    measure_script,
)
LOAD = Benchmark(
    "load",
    (
        Goal(f"{PEOPLE} people, each moving the rate every {THINK_S:g} s: P95 of a rerun at the socket", "ms", 200),
        Goal("sessions with an error", "sessions", None),
    ),
    measure_load,
)
