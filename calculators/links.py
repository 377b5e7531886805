"""A scenario as a link, and what a link that was typed, cut or aged says.

A link spells out every value, defaults included, and the version of its schema, so that it means the same in a
later release: ``ttft?v=1&rate=16&service_ms=50&…``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from calculators.inputs import Input, InputError, Text, Value, did_you_mean, linked, shorten

VERSION = 1
"""The schema of links. It grows when a parameter changes its meaning; adding a parameter does not."""

VERSION_PARAMETER = "v"


def encode(page: str, inputs: Any) -> str:
    """Return ``page?v=…&name=value&…`` with every input of ``inputs`` but files."""
    known = linked(type(inputs))
    query = {name: each.format(getattr(inputs, name)) for name, each in known.items()}
    return f"{page}?{urlencode({VERSION_PARAMETER: VERSION} | query)}"


@dataclass(frozen=True)
class Misunderstanding:
    """One parameter of a link that was not understood.

    Attributes
    ----------
    parameter : str
        Its name, as it stands in the link.
    sentence : str
        What was wrong and what was used in its place. Plain text: it quotes the link and is never rendered.
    """

    parameter: str
    sentence: str


def misunderstandings(
    query: Mapping[str, Sequence[str]], inputs: Mapping[str, Input], used: Mapping[str, Value]
) -> list[Misunderstanding]:
    """Compare what a link said with what is in use.

    Parameters
    ----------
    query
        The parameters of the link, each with all its values.
    inputs
        The inputs that a link to this page can set, by name.
    used
        The value of each input that is in use now.

    Returns
    -------
    list of Misunderstanding
        One for each parameter that was not understood, in the order of the link; empty for a sound link.
    """
    found = []
    for parameter, texts in query.items():
        sentence = (
            _version_sentence(texts) if parameter == VERSION_PARAMETER else _sentence(parameter, texts, inputs, used)
        )
        if sentence:
            found.append(Misunderstanding(parameter, sentence))
    return found


def _version_sentence(texts: Sequence[str]) -> str:
    if list(texts) == [str(VERSION)]:
        return ""
    return (
        f"{VERSION_PARAMETER} = {shorten(','.join(texts))}: this release reads links of version {VERSION}; "
        "the rest was read as if it were one. Check every value."
    )


def _sentence(parameter: str, texts: Sequence[str], inputs: Mapping[str, Input], used: Mapping[str, Value]) -> str:
    if parameter not in inputs:
        near = did_you_mean(parameter, inputs)
        return f"{shorten(parameter)} is not an input of this page and was left out" + (f"; {near}" if near else ".")
    declaration, value = inputs[parameter], used[parameter]
    in_use = _in_use(declaration, value)
    try:
        meant = [declaration.parse(text) for text in texts]
    except InputError as error:
        return f"{error}. {in_use}"
    if len(texts) > 1:
        return f"{parameter} is given {len(texts)} times ({shorten(', '.join(texts))}). {in_use}"
    if meant[0] != value:
        return f"{parameter} = {shorten(texts[0])} could not be set. {in_use}"
    return ""


def _in_use(declaration: Input, value: Value) -> str:
    if value is None or value == "":
        return f"In use: none ({declaration.empty})." if declaration.empty else "In use: none."
    shown = shorten(value) if isinstance(declaration, Text) else declaration.format(value)
    return f"In use: {shown} {declaration.unit}".rstrip() + "."
