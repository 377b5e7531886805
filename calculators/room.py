"""What the catalog knows of a page and of a calculator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Room:
    """One page of the app.

    Attributes
    ----------
    name : str
        Its folder, the path in a link and the word on the command line.
    title : str
        What stands in the navigation and above the page.
    question : str
        The question that it answers, in one sentence.
    icon : str
        A Material symbol, ``:material/…:``.
    section : str
        The drop-down of the navigation that it stands in; empty for a page that is one click away.
    inputs : type
        The dataclass of everything that a link to it carries.
    is_front : bool
        Whether the app opens with it.
    own_inputs : {"sidebar", "page"}
        Where the inputs that only this page has are drawn: below the shared ones, or in a row under the head.
    row : tuple of str
        Names of those that stand in a row under the head although the others are in the sidebar.
    groups : tuple of (str, type)
        Headings in the sidebar for the others, each with the dataclass that declares them.
    is_stoppable : bool
        Whether something that takes long can be stopped by a button on the page, which is then drawn with all around it:
        Streamlit ends the run of an app for a click, but not that of a part of it.
    """

    name: str
    title: str
    question: str
    icon: str
    inputs: type
    section: str = ""
    is_front: bool = False
    own_inputs: Literal["sidebar", "page"] = "sidebar"
    row: tuple[str, ...] = ()
    groups: tuple[tuple[str, type], ...] = ()
    is_stoppable: bool = False

    @property
    def path(self) -> str:
        """The path of the page in a link: its name, or nothing for the front page."""
        return "" if self.is_front else self.name

    @property
    def page(self) -> str:
        """The page's file, relative to the root of the project."""
        return f"calculators/{self.name}/page.py"


@dataclass(frozen=True, kw_only=True)
class Calculator(Room):
    """A room that computes.

    Attributes
    ----------
    compute : callable
        Inputs to result, a frozen dataclass of :func:`~calculators.outputs.output` fields with ``warnings``.
    answer : callable
        Inputs and result to the answer in one sentence of Markdown, its verdict's icon in front.
    check : callable or None
        Inputs to the result of the simulation that stands beside the formula.
    prepare : callable or None
        On the command line, the inputs and the names of those that were given to the inputs with what a file says.
    """

    compute: Callable[[Any], Any]
    answer: Callable[[Any, Any], str]
    check: Callable[[Any], Any] | None = None
    prepare: Callable[[Any, frozenset[str]], Any] | None = None
