"""What the catalog knows of a page and of a calculator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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
    inputs : type
        The dataclass of everything that a link to it carries.
    is_front : bool
        Whether the app opens with it.
    """

    name: str
    title: str
    question: str
    icon: str
    inputs: type
    is_front: bool = False

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
    on_front : bool
        Whether its answer stands on the front page: not where it takes a second to find.
    check : callable or None
        Inputs to the result of the simulation that stands beside the formula.
    """

    compute: Callable[[Any], Any]
    answer: Callable[[Any, Any], str]
    check: Callable[[Any], Any] | None = None
    on_front: bool = True
