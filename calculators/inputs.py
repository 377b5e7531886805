"""What an input is: declared once, used by the widget, the link, the command line, the JSON and the report.

An inputs class is a frozen dataclass whose fields are made by :func:`number`, :func:`integer`,
:func:`choice`, :func:`text`, :func:`of_file` and :func:`same_as`::

    @dataclass(frozen=True, kw_only=True)
    class Traffic:
        rate: float = number("Arrival rate", unit="requests/s", low=0.001, high=1e6, default=16, help="…")

The name of the field is the name of the widget's key, of the URL parameter, of the JSON key and, with
hyphens, of the command-line flag. Values are in the user's units (ms, GB/s); SI begins inside ``compute``.
"""

from __future__ import annotations

import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, TypeVar, cast

Value = float | int | str | None
T = TypeVar("T")

SHOWN_CHARACTERS = 60
"""How much of a value that was not understood is repeated in a message."""


class InputError(ValueError):
    """A value that an input does not accept: which input, what value, what is allowed, what to do.

    Attributes
    ----------
    name : str
        The input's name.
    value : object
        What was given.
    sentence : str
        What is wrong with it, what is allowed, what to do.
    """

    def __init__(self, name: str, value: object, sentence: str) -> None:
        self.name = name
        self.value = value
        self.sentence = sentence
        super().__init__(f"{name} = {shorten(value)}: {sentence}")


class InputsError(ValueError):
    """Several inputs were wrong at once: the errors one by one in ``errors``."""

    def __init__(self, errors: Iterable[InputError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))


def shorten(value: object) -> str:
    """Return ``value`` as it can stand in a one-line message: printable, quoted if it is text, and short."""
    if not isinstance(value, str):
        return str(value)
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in value)
    if len(printable) > SHOWN_CHARACTERS:
        printable = printable[:SHOWN_CHARACTERS] + "…"
    return f'"{printable}"'


def did_you_mean(text: str, known: Iterable[str], count: int = 3) -> str:
    """Return ``"did you mean a, b or c?"`` for names that contain ``text`` or are close to it, or an empty string."""
    by_folded = {name.casefold().lstrip("-"): name for name in known}
    folded = text.casefold().lstrip("-")
    holding = [each for each in by_folded if len(folded) > 1 and folded in each]
    near = dict.fromkeys([*holding, *difflib.get_close_matches(folded, by_folded, count, 0.5)])
    close = [by_folded[each] for each in near][:count]
    if not close:
        return ""
    return f"did you mean {' or '.join([', '.join(close[:-1]), close[-1]] if close[1:] else close)}?"


@dataclass(frozen=True, kw_only=True)
class Input(ABC):
    """What all kinds of input have in common.

    Attributes
    ----------
    name : str
        Taken from the field that declares the input.
    label : str
        What a person reads beside the widget.
    unit : str
        The unit of the value, empty for a pure number or a name.
    default : float or int or str or None
        A constant. ``None`` means "from the data sheet", in the words of ``empty``.
    help : str
        One or two sentences: what it is, and what it does to the answer.
    symbol : str
        The symbol that stands for it in the formulas (LaTeX), or empty.
    empty : str
        What an empty value means; an input without it must have a value.
    """

    name: str = ""
    label: str = ""
    unit: str = ""
    default: Value = None
    help: str = ""
    symbol: str = ""
    empty: str = ""

    @property
    def flag(self) -> str:
        """The command-line flag, ``--prompt-tokens`` for ``prompt_tokens``."""
        return "--" + self.name.replace("_", "-")

    @property
    @abstractmethod
    def allowed(self) -> str:
        """What is allowed, as it stands in an error message."""

    def parse(self, text: str) -> Value:
        """Return the value that ``text`` (from a link or a command line) stands for.

        Raises
        ------
        InputError
            If it stands for none that is allowed.
        """
        try:
            return self.check(self._read(text.strip()) if text.strip() else None)
        except InputError as error:
            raise self.error(text.strip(), error.sentence) from None

    def check(self, value: object) -> Value:
        """Return ``value`` in its own type if it is allowed.

        Raises
        ------
        InputError
            If it is not.
        """
        if value is None:
            if self.empty:
                return None
            raise self.error("", f"a value is needed; allowed: {self.allowed}")
        return self._check(value)

    def format(self, value: Value) -> str:
        """Return ``value`` as text that :meth:`parse` turns back into the same value, to the last digit."""
        return "" if value is None else str(value)

    def error(self, value: object, sentence: str) -> InputError:
        """Return an error about this input."""
        return InputError(self.name, value, sentence)

    def _read(self, text: str) -> object:
        return text

    @abstractmethod
    def _check(self, value: object) -> Value: ...


@dataclass(frozen=True, kw_only=True)
class Number(Input):
    """A real number between ``low`` and ``high``, both included; ``step`` is what one click changes."""

    low: float
    high: float
    step: float

    kind: ClassVar[str] = "a number"

    @property
    def allowed(self) -> str:
        """The range with its unit."""
        empty = f", or empty ({self.empty})" if self.empty else ""
        return f"{self.kind} from {self.low:,.10g} to {self.high:,.10g} {self.unit}".rstrip() + empty

    def format(self, value: Value) -> str:
        """Return the shortest text that reads back as the same number: ``16``, not ``16.0``."""
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        return "" if value is None else repr(value)

    def _read(self, text: str) -> object:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        # Python reads "1_000"; in a link or a flag it is more likely damaged than meant.
        if "_" in text or not math.isfinite(value):
            raise self.error(text, f"not a finite number; allowed: {self.allowed}")
        return value

    def _check(self, value: object) -> Value:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.error(value, f"not a finite number; allowed: {self.allowed}")
        if not self.low <= value <= self.high:
            raise self.error(value, f"out of range; allowed: {self.allowed}")
        return float(value)


@dataclass(frozen=True, kw_only=True)
class Integer(Number):
    """A whole number between ``low`` and ``high``, both included."""

    kind: ClassVar[str] = "a whole number"

    def _check(self, value: object) -> Value:
        number = super()._check(value)
        if not float(number).is_integer():  # type: ignore[arg-type]
            raise self.error(value, f"not a whole number; allowed: {self.allowed}")
        return int(number)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Choice(Input):
    """One of ``options``, stable ids that a link can carry for years; ``listed_by`` is the command that lists them."""

    options: tuple[str, ...]
    listed_by: str = ""

    @property
    def allowed(self) -> str:
        """The options, or how many there are and the command that lists them."""
        empty = f", or empty ({self.empty})" if self.empty else ""
        if self.listed_by:
            return f"one of {len(self.options)} names that `{self.listed_by}` lists" + empty
        return "one of " + ", ".join(self.options) + empty

    def _check(self, value: object) -> Value:
        if value in self.options:
            return str(value)
        near = did_you_mean(str(value), self.options)
        raise self.error(value, f"not known; {near + ' ' if near else ''}allowed: {self.allowed}")


@dataclass(frozen=True, kw_only=True)
class Text(Input):
    """Free text, used to search and never rendered as HTML or Markdown."""

    longest: int = 80

    @property
    def allowed(self) -> str:
        """How long it may be."""
        return f"text of at most {self.longest} characters"

    def check(self, value: object) -> Value:
        """Return the text; nothing at all, or nothing but spaces, is the empty text."""
        return self._check("" if value is None else value)

    def _check(self, value: object) -> Value:
        if not isinstance(value, str) or len(value) > self.longest:
            raise self.error(value, f"too long; allowed: {self.allowed}")
        # A search pasted from elsewhere brings odd spaces and invisible marks along.
        text = "".join(character if character.isprintable() else " " for character in value)
        return text if text.strip() else ""


@dataclass(frozen=True, kw_only=True)
class OfFile(Input):
    """What is said of a file, on the command line only: a link cannot carry a file, and a page takes an upload instead.

    Attributes
    ----------
    what : str
        What the value is, for the message.
    """

    what: str

    @property
    def allowed(self) -> str:
        """What it must be."""
        return f"{self.what}, or empty ({self.empty})"

    def _check(self, value: object) -> Value:
        if not isinstance(value, str):
            raise self.error(value, f"not text; allowed: {self.allowed}")
        return value


def number(
    label: str,
    *,
    unit: str = "",
    low: float,
    high: float,
    default: float | None,
    step: float = 1.0,
    help: str,  # noqa: A002 - Streamlit's and argparse's word for it
    symbol: str = "",
    empty: str = "",
) -> Any:
    """Declare a real number as a dataclass field."""
    return _declare(
        Number(
            label=label,
            unit=unit,
            low=float(low),
            high=float(high),
            default=None if default is None else float(default),
            step=float(step),
            help=help,
            symbol=symbol,
            empty=empty,
        )
    )


def integer(
    label: str,
    *,
    unit: str = "",
    low: int,
    high: int,
    default: int | None,
    step: int = 1,
    help: str,  # noqa: A002 - Streamlit's and argparse's word for it
    symbol: str = "",
    empty: str = "",
) -> Any:
    """Declare a whole number as a dataclass field."""
    return _declare(
        Integer(
            label=label,
            unit=unit,
            low=low,
            high=high,
            default=default,
            step=step,
            help=help,
            symbol=symbol,
            empty=empty,
        )
    )


def choice(
    label: str,
    *,
    options: Iterable[str],
    default: str | None,
    help: str,  # noqa: A002 - Streamlit's and argparse's word for it
    empty: str = "",
    listed_by: str = "",
) -> Any:
    """Declare a choice between stable ids as a dataclass field."""
    return _declare(
        Choice(label=label, options=tuple(options), default=default, help=help, empty=empty, listed_by=listed_by)
    )


def text(label: str, *, default: str = "", help: str, longest: int = 80) -> Any:  # noqa: A002 - as above
    """Declare a free text as a dataclass field."""
    return _declare(Text(label=label, default=default, help=help, longest=longest))


def of_file(label: str, *, what: str = "the path of a file", help: str, empty: str) -> Any:  # noqa: A002 - as above
    """Declare the path of a file, or what else is said of it, given on the command line alone, as a dataclass field."""
    return _declare(OfFile(label=label, what=what, default=None, help=help, empty=empty))


def same_as(group: type, name: str) -> Any:
    """Declare an input of another group, where the rest of that group is not wanted."""
    declared_there = next(each for each in fields(group) if each.name == name)
    return field(default=declared_there.default, metadata=declared_there.metadata)


def _declare(declaration: Input) -> Any:
    return field(default=declaration.default, metadata={"input": declaration})


def declared(inputs: type) -> Mapping[str, Input]:
    """Return the inputs that the dataclass ``inputs`` declares, by name, in the order of declaration."""
    return _declared(cast("Hashable", inputs))


@cache
def _declared(inputs: Any) -> Mapping[str, Input]:
    return {f.name: replace(f.metadata["input"], name=f.name) for f in fields(inputs) if "input" in f.metadata}


def linked(inputs: type) -> Mapping[str, Input]:
    """Return the inputs that a link can carry: all but files."""
    return {name: each for name, each in declared(inputs).items() if not isinstance(each, OfFile)}


def defaults(inputs: type) -> dict[str, Value]:
    """Return every input's default by name."""
    return {name: declaration.default for name, declaration in declared(inputs).items()}


def build(inputs: type[T], values: Mapping[str, object]) -> T:
    """Return an instance of ``inputs`` from typed ``values`` by name; what is missing has its default.

    Raises
    ------
    InputsError
        If some values are not allowed: all of them at once.
    TypeError
        If a name is not one of the inputs.
    """
    return _build(inputs, values, lambda declaration, value: declaration.check(value))


def parse(inputs: type[T], texts: Mapping[str, str]) -> T:
    """Return an instance of ``inputs`` from ``texts`` by name, as they stand in a link or on a command line.

    Raises
    ------
    InputsError
        If some texts are not allowed: all of them at once.
    TypeError
        If a name is not one of the inputs.
    """
    return _build(inputs, texts, lambda declaration, text: declaration.parse(text))


def _build(inputs: type[T], given: Mapping[str, Any], read: Callable[[Input, Any], Value]) -> T:
    known = declared(inputs)
    if unknown := given.keys() - known.keys():
        raise TypeError(f"{inputs.__name__} has no inputs {sorted(unknown)}")
    values: dict[str, Value] = {}
    errors = []
    for name, each in given.items():
        try:
            values[name] = read(known[name], each)
        except InputError as error:
            errors.append(error)
    if errors:
        raise InputsError(errors)
    return inputs(**values)


def as_dict(values: Any) -> dict[str, Value]:
    """Return the values of an inputs instance by name, in the order of declaration."""
    return {name: getattr(values, name) for name in declared(type(values))}


def part_of(inputs: type[T], whole: Any, **changes: Any) -> T:
    """Return the inputs of a smaller dataclass from those of a larger one, some of them changed."""
    return inputs(**{name: getattr(whole, name) for name in declared(inputs) if name not in changes}, **changes)
