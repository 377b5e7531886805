r"""LaTeX of expressions, with the symbols in a formula's own notation or with numbers in their place.

SymPy's printer would write :math:`-DR + 1`, and a number put in through ``symbol_names`` without the
parentheses it needs: ``-3^{2}``, or ``2 \times 10^{-6}^{2}``. This one writes low degrees and positive
terms first and treats a number as what it looks like: a product if it shows a power of ten, a sum if it
is negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter


class _Printer(LatexPrinter):  # type: ignore[misc]
    """Printer that draws symbols by a table: names, or numbers already written in LaTeX."""

    def __init__(self, table: Mapping[sp.Symbol, str], **settings: Any) -> None:
        super().__init__({"order": "rev-lex", "ln_notation": True, "fold_short_frac": False, **settings})
        self._table = table

    def _print_Symbol(self, expr: sp.Symbol, **_: Any) -> str:  # noqa: N802 - SymPy dispatches on it
        text = self._table.get(expr)
        if text is None:
            return str(super()._print_Symbol(expr))
        return rf"\left({text}\right)" if text.startswith("-") else text

    def _print_Add(self, expr: sp.Add, order: str | None = None) -> str:  # noqa: N802
        terms = self._as_ordered_terms(expr, order=order)
        terms.sort(key=lambda term: bool(term.could_extract_minus_sign()))
        drawn = ""
        for term in terms:
            minus = bool(term.could_extract_minus_sign()) and bool(drawn)
            text = self._print(-term if minus else term)
            if self._needs_add_brackets(-term if minus else term):
                text = rf"\left({text}\right)"
            drawn += (" - " if minus else " + " if drawn else "") + text
        return drawn

    def _print_Float(self, expr: sp.Float) -> str:  # noqa: N802
        return shown_number(float(expr))

    def parenthesize_super(self, s: str) -> str:
        """Parenthesize a base that shows a power itself, as numbers with a power of ten do; but only once."""
        return s if s.startswith(r"\left(") else str(super().parenthesize_super(s))


def draw(equation: sp.Basic, notation: Mapping[sp.Symbol, str]) -> str:
    r"""LaTeX of an expression or equation, each symbol in the given notation.

    Examples
    --------
    >>> R, D = sp.symbols("rate service_time", positive=True)
    >>> draw(R * D**2 / 2 / (1 - R * D), {R: "R", D: "D"})
    '\\frac{R D^{2}}{2 \\left(1 - R D\\right)}'
    """
    return str(_Printer(notation).doprint(equation))


def draw_with_numbers(expression: sp.Expr, numbers: Mapping[sp.Symbol, float]) -> str:
    r"""LaTeX of an expression with a number in place of each symbol.

    Examples
    --------
    >>> R, D = sp.symbols("rate service_time", positive=True)
    >>> draw_with_numbers(R * D**2 / 2 / (1 - R * D), {R: 16, D: 0.05})
    '\\frac{16 \\cdot 0.05^{2}}{2 \\cdot \\left(1 - 16 \\cdot 0.05\\right)}'
    """
    table = {symbol: shown_number(x) for symbol, x in numbers.items()}
    return str(_Printer(table, mul_symbol="dot").doprint(expression))


def shown_number(value: float | str) -> str:
    r"""LaTeX of a number, in full between 1e-4 and 1e6, otherwise with a power of ten.

    Examples
    --------
    >>> shown_number(0.05), shown_number(2e-6), shown_number(989e12)
    ('0.05', '2 \\times 10^{-6}', '9.89 \\times 10^{14}')
    """
    number = float(value)
    if number == 0 or 1e-4 <= abs(number) < 1e6:
        return repr(number).removesuffix(".0")
    shortest = next(text for d in range(18) if float(text := f"{number:.{d}e}") == number)
    mantissa, exponent = shortest.split("e")
    power = rf"10^{{{int(exponent)}}}"
    return {"1": power, "-1": f"-{power}"}.get(mantissa, rf"{mantissa} \times {power}")
