"""Evaluates the LaTeX that formulas are shown in, as a reader would: from the text alone."""

import math
import re

from scipy.special import lambertw

from formulas.queueing.roots import conjugate_utilization

_TOKEN = re.compile(r"\s*(\d+\.?\d*(?:e[+-]?\d+)?|\\[a-zA-Z]+|[a-zA-Z]|.)")
_FUNCTIONS = {r"\ln": math.log, r"\sqrt": math.sqrt, r"\max": max, r"\min": min, "u": conjugate_utilization}


def value(text: str) -> float:
    """Value of an expression of numbers."""
    reader = _Reader(text)
    result = reader.sum()
    assert not reader.tokens, reader.tokens
    return result


def sides(equation: str) -> tuple[str, str, bool]:
    """Middle and right side of ``name = numbers = result``, and whether the last sign claims equality."""
    middle, sign, right = re.fullmatch(r".*? = (.*) (=|\\approx) (.*)", equation).groups()
    return middle, right, sign == "="


class _Reader:
    def __init__(self, text: str) -> None:
        text = text.replace(r"\left", "").replace(r"\right", "").replace(r"\cdot", "*").replace(r"\times", "*")
        self.tokens = _TOKEN.findall(text.replace(r"\,", ""))

    def peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def take(self, wanted: str | None = None) -> str:
        symbol = self.tokens.pop(0)
        assert wanted is None or symbol == wanted, (symbol, wanted)
        return symbol

    def sum(self) -> float:
        total = self.product()
        while self.peek() in ("+", "-") and self.peek():
            total += self.product() if self.take() == "+" else -self.product()
        return total

    def product(self) -> float:
        if self.peek() == "-":
            self.take()
            return -self.product()
        total = self.power()
        while self.peek() in ("*", "(") or (
            self.peek().startswith("\\") and self.peek() not in (r"\rfloor", r"\rceil")
        ):
            if self.peek() == "*":
                self.take()
            total *= self.power()
        return total

    def power(self) -> float:
        base = self.atom()
        if self.peek() == "^":
            self.take()
            base **= self.group("{", "}") if self.peek() == "{" else self.atom()
        return base

    def atom(self) -> float:
        symbol = self.peek()
        if symbol == "(":
            return self.group("(", ")")
        if symbol == "{":
            return self.group("{", "}")
        if symbol == r"\lfloor":
            return math.floor(self.group(r"\lfloor", r"\rfloor"))
        if symbol == r"\lceil":
            return math.ceil(self.group(r"\lceil", r"\rceil"))
        self.take()
        if symbol == r"\frac":
            return self.group("{", "}") / self.group("{", "}")
        if symbol == "e":
            return math.e
        if symbol == "W":
            return self.lambert()
        if symbol in _FUNCTIONS:
            return self.function(symbol)
        return float(symbol)

    def lambert(self) -> float:
        self.take("_")
        branch = int(self.group("{", "}"))
        return float(lambertw(self.group("(", ")"), branch).real)

    def function(self, name: str) -> float:
        braces = self.peek() == "{"
        if braces:
            self.take("{")
        if name == r"\sqrt":
            result = math.sqrt(self.sum())
        else:
            self.take("(")
            arguments = [self.sum()]
            while self.peek() == ",":
                self.take(",")
                arguments.append(self.sum())
            self.take(")")
            result = _FUNCTIONS[name](*arguments)
        if braces:
            self.take("}")
        return result

    def group(self, left: str, right: str) -> float:
        self.take(left)
        result = self.sum()
        self.take(right)
        return result
