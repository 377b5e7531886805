r"""One object for each formula: expression, symbols with units, domain, source.

From that one object come the NumPy function, the LaTeX, the LaTeX with numbers put in, the inverse
and the elasticities, so that the number shown, the formula shown and the code that runs are the same.

Nothing expensive happens at import: functions are compiled at their first call, and solving and
simplifying wait until someone asks. SymPy multiplies a number into a sum (``2*(1 - x)`` becomes
``2 - 2*x``), so write ``a/2/(1 - x)`` to see :math:`\frac{a}{2(1 - x)}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from formulas.latex import draw, draw_with_numbers, shown_number

Numeric = float | NDArray[np.float64]


class DomainError(ValueError):
    """A question outside the domain of a formula; the message is a sentence for people."""


@dataclass(frozen=True)
class Variable:
    r"""A symbol with its notation, unit and meaning.

    Parameters
    ----------
    symbol
        SymPy symbol whose name is also the keyword of :meth:`ClosedForm.__call__`.
    latex
        Notation, as in ``r"\rho"``.
    unit
        SI unit; an empty string is dimensionless.
    description
        What it is, in a few words.
    """

    symbol: sp.Symbol
    latex: str
    unit: str
    description: str

    @property
    def name(self) -> str:
        """Python name of the symbol."""
        return str(self.symbol.name)


def variable(name: str, latex: str, unit: str, description: str, **assumptions: bool) -> Variable:
    """Variable over a new symbol, positive unless other SymPy assumptions are given.

    Examples
    --------
    >>> variable("rate", "R", "1/s", "arrival rate").symbol.is_positive
    True
    """
    return Variable(sp.Symbol(name, **(assumptions or {"positive": True})), latex, unit, description)


def equation(left: Any, right: Any) -> sp.Eq:
    """Equation as written: SymPy neither decides it nor rearranges it."""
    return sp.Eq(left, right, evaluate=False)


def less(left: Any, right: Any) -> sp.Rel:
    """Relation ``left < right`` as written, for a domain: deciding it would cost SymPy 40 ms at import."""
    return sp.StrictLessThan(left, right, evaluate=False)


def at_most(left: Any, right: Any) -> sp.Rel:
    """Relation ``left <= right`` as written; see :func:`less`."""
    return sp.LessThan(left, right, evaluate=False)


def tidy(expression: sp.Expr) -> sp.Expr:
    """Turn ``-a/(x - 1)`` into ``a/(1 - x)``.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> tidy(-3 / (x - 1))
    3/(1 - x)
    """
    result, below = sp.fraction(expression)
    for factor in sp.Mul.make_args(below):
        base, power = factor.as_base_exp()
        turn = base.is_Add and base.as_coeff_Add()[0].is_negative and power.is_integer
        result = result * (-1) ** power / (-base) ** power if turn else result / factor
    return result


@dataclass(frozen=True)
class Condition:
    """Part of a domain: a relation in the arguments, and the sentence said where it does not hold."""

    holds: sp.Basic
    otherwise: str


@dataclass(frozen=True)
class Step:
    """One line of a derivation: a sentence, and the equation it leads to."""

    text: str
    equation: sp.Basic


@dataclass(frozen=True, eq=False)
class ClosedForm:
    r"""A formula.

    Parameters
    ----------
    name
        What it gives, in a few words.
    result
        The variable on the left-hand side.
    expression
        The right-hand side, in the symbols of `arguments`.
    arguments
        Every free symbol of the expression, in the order a reader expects.
    source
        Paper, section and equation.
    domain
        Conditions under which the formula holds. A positive symbol need not be mentioned.
    derivation
        Function without arguments that returns the steps; called when someone asks.
    mentions
        Variables that only the derivation mentions, for their notation.

    Examples
    --------
    >>> x = variable("rate", "R", "1/s", "arrival rate")
    >>> d = variable("service_time", "D", "s", "time of service")
    >>> rho = variable("utilization", r"\rho", "", "share of time that the server is busy")
    >>> load = ClosedForm("utilization", rho, x.symbol * d.symbol, (x, d), "definition")
    >>> load(rate=16, service_time=0.05)
    0.8
    >>> load.latex()
    '\\rho = R D'
    >>> load.substituted(rate=16, service_time=0.05)
    '\\rho = 16 \\cdot 0.05 = 0.8'
    >>> load.solve_for("rate")
    (utilization/service_time,)
    """

    name: str
    result: Variable
    expression: sp.Expr
    arguments: tuple[Variable, ...]
    source: str
    domain: tuple[Condition, ...] = ()
    derivation: Callable[[], tuple[Step, ...]] | None = None
    mentions: tuple[Variable, ...] = ()

    def __post_init__(self) -> None:
        known = {v.symbol for v in self.arguments}
        used = set(self.expression.free_symbols)
        for condition in self.domain:
            used |= condition.holds.free_symbols
        if used - known:
            raise ValueError(f"{self.name}: no variable describes {_names(used - known)}.")

    def __call__(self, **values: Any) -> Any:
        """Value at the given arguments, by keyword; arrays broadcast.

        Returns
        -------
        float or ndarray
            A Python float if every argument is a number, otherwise an array.

        Raises
        ------
        TypeError
            If an argument is missing or unknown.
        DomainError
            If every argument is a number and they lie outside the domain. In arrays, such elements are NaN.
        """
        numbers = self._numbers(values)
        shape = np.broadcast_shapes(*(x.shape for x in numbers))
        if not shape:
            return self._scalar([float(x) for x in numbers])
        with np.errstate(all="ignore"):
            value = np.broadcast_to(self._function(*numbers), shape).astype(float)
            inside = np.broadcast_to(np.isfinite(value), shape).copy()
            for test in self._tests:
                inside &= np.asarray(test(*numbers), dtype=bool)
        return np.where(inside, value, np.nan)

    def violations(self, **values: Any) -> tuple[str, ...]:
        """Sentences of the conditions that the given numbers (or any of the given elements) break."""
        numbers = self._numbers(values)
        with np.errstate(all="ignore"):
            broken = [not np.all(test(*numbers)) for test in self._tests]
        return tuple(s for s, b in zip(self._sentences, broken, strict=True) if b)

    def exact(self, **values: Any) -> sp.Expr:
        """Value in exact arithmetic: a float counts as the binary fraction it is, a string as a decimal."""
        self._check_names(values)
        return self.expression.subs({v.symbol: _rational(values[v.name]) for v in self.arguments})

    def latex(self) -> str:
        """Equation in LaTeX, in the notation of the variables."""
        return self._latex

    @cached_property
    def _latex(self) -> str:
        return f"{self.result.latex} = {draw(self.expression, self.notation)}"

    def draw(self, equation: sp.Basic) -> str:
        """LaTeX of a derivation step, a solution or another expression, in this formula's notation."""
        return draw(equation, self.notation)

    def substituted(self, *, digits: int = 6, **values: Any) -> str:
        r"""Equation in LaTeX with the numbers in place of the symbols, and the result.

        The numbers are shown with `digits` significant digits, or with as many more as it takes for the
        left form to evaluate to the result shown. The last sign is ``=`` where the result shown
        is the value to twelve digits, and ``\approx`` where it is rounded.
        """
        given = {v.name: float(x) for v, x in zip(self.arguments, self._numbers(values), strict=True)}
        value = float(self(**given))
        shown, result = given, f"{value:.{digits}g}"
        for used in range(digits, 18):
            shown = {k: float(f"{x:.{used}g}") for k, x in given.items()}
            if not self.violations(**shown) and f"{self(**shown):.{digits}g}" == result:
                break
        exact = abs(float(result) - self(**shown)) <= 1e-12 * abs(value)
        numbers = {v.symbol: shown[v.name] for v in self.arguments}
        left, sign = draw_with_numbers(self.expression, numbers), "=" if exact else r"\approx"
        return f"{self.result.latex} = {left} {sign} {shown_number(result)}"

    def solve_for(self, name: str) -> tuple[sp.Expr, ...]:
        """Return the solutions for one argument, in the others and the result's symbol."""
        return _solutions(self.expression, self.result.symbol, self.argument(name).symbol)

    def inverse(self, name: str) -> ClosedForm:
        """Return the formula for one argument, where the solution is unique; its domain carries over."""
        solutions = self.solve_for(name)
        if len(solutions) != 1:
            raise ValueError(f"{self.name} has {len(solutions)} solutions for {name}, not one.")
        return _inverse(self, name, solutions[0])

    def elasticity(self, name: str) -> ClosedForm:
        r"""Return :math:`\frac{x}{f} \frac{\partial f}{\partial x}`: percent per percent of `name`.

        A whole number moves like what it is rounded from.
        """
        self.argument(name)
        return _elasticity(self, name)

    def argument(self, name: str) -> Variable:
        """Argument of that name."""
        for v in self.arguments:
            if v.name == name:
                return v
        raise TypeError(f"{self.name} does not know {name}.")

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The derivation, worked out once."""
        return self.derivation() if self.derivation else ()

    @cached_property
    def notation(self) -> Mapping[sp.Symbol, str]:
        """LaTeX of every symbol: arguments, result, and what the derivation mentions."""
        return {v.symbol: v.latex for v in (*self.mentions, *self.arguments, self.result)}

    @cached_property
    def _function(self) -> Callable[..., Any]:
        return _compile(self._symbols, self.expression)

    @cached_property
    def _symbols(self) -> tuple[sp.Symbol, ...]:
        return tuple(v.symbol for v in self.arguments)

    @cached_property
    def _tests(self) -> tuple[Callable[..., Any], ...]:
        conditions = [_compile(self._symbols, c.holds) for c in self.domain]
        signs = [lambda *x, i=i: x[i] >= 0 for i, v in enumerate(self.arguments) if v in self._signed]
        return (*signs, *conditions)

    @cached_property
    def _sentences(self) -> tuple[str, ...]:
        signs = [f"The {v.description} ({v.name}) cannot be negative." for v in self._signed]
        return (*signs, *(c.otherwise for c in self.domain))

    @cached_property
    def _signed(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.arguments if v.symbol.is_nonnegative)

    def _scalar(self, numbers: list[float]) -> float:
        with np.errstate(all="ignore"):
            broken = [s for s, t in zip(self._sentences, self._tests, strict=True) if not t(*numbers)]
            if broken:
                raise DomainError(" ".join(broken))
            try:
                value = complex(self._function(*map(np.float64, numbers)))
            except (ZeroDivisionError, OverflowError):
                value = complex(np.nan)
        if value.imag or not np.isfinite(value.real):
            given = ", ".join(f"{v.name} = {x:g}" for v, x in zip(self.arguments, numbers, strict=True))
            raise DomainError(f"The {self.name} has no finite value at {given}.")
        return value.real

    def _numbers(self, values: Mapping[str, Any]) -> list[NDArray[np.float64]]:
        self._check_names(values)
        return [np.asarray(values[v.name], dtype=float) for v in self.arguments]

    def _check_names(self, values: Mapping[str, Any]) -> None:
        wanted = {v.name for v in self.arguments}
        for problem, names in (("needs", wanted - set(values)), ("does not know", set(values) - wanted)):
            if names:
                raise TypeError(f"{self.name} {problem} {_names(names)}.")


def _names(symbols: set[Any]) -> str:
    return ", ".join(sorted(map(str, symbols)))


def _compile(symbols: tuple[sp.Symbol, ...], expression: sp.Basic) -> Callable[..., Any]:
    # The module itself, not its name: by the name SymPy imports everything that NumPy has, which takes 0.1 s.
    function: Callable[..., Any] = sp.lambdify(symbols, expression, [np], cse=True)
    return function


def _rational(value: Any) -> sp.Expr:
    """SymPy number of a number or decimal string; a float is the binary fraction that it is."""
    if isinstance(value, sp.Basic):
        return value
    if isinstance(value, Fraction):
        return sp.Rational(value.numerator, value.denominator)
    return sp.Rational(value if isinstance(value, int | str) else float(value))


@lru_cache(maxsize=256)
def _solutions(expression: sp.Expr, result: sp.Symbol, symbol: sp.Symbol) -> tuple[sp.Expr, ...]:
    found = sp.solve(sp.Eq(result, expression), symbol)
    return tuple(tidy(sp.factor(s)) for s in found if s.is_real is not False)


@lru_cache(maxsize=256)
def _inverse(form: ClosedForm, name: str, solution: sp.Expr) -> ClosedForm:
    wanted = form.argument(name)
    others = tuple(v for v in form.arguments if v is not wanted)
    domain = tuple(Condition(c.holds.subs(wanted.symbol, solution), c.otherwise) for c in form.domain)
    return ClosedForm(f"{name} for a given {form.name}", wanted, solution, (form.result, *others), form.source, domain)


@lru_cache(maxsize=256)
def _elasticity(form: ClosedForm, name: str) -> ClosedForm:
    x = form.argument(name)
    smooth = form.expression.replace(sp.floor, lambda inner: inner).replace(sp.ceiling, lambda inner: inner)
    slope = tidy(sp.simplify(x.symbol / smooth * sp.diff(smooth, x.symbol)))
    meaning = f"elasticity of the {form.name} in the {x.description}"
    result = variable("elasticity", rf"\varepsilon_{{{x.latex}}}", "", meaning, real=True)
    return ClosedForm(meaning, result, slope, form.arguments, form.source, form.domain)
