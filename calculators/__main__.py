"""The command line: ``python -m calculators ttft --rate 16 --service-ms 50 --json``.

Exit status 0: an answer, even if it is "unstable". Exit status 2: a wrong input, named in one line on standard error.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

from calculators import catalog, links, outputs
from calculators.hardware import tables
from calculators.inputs import Input, InputsError, as_dict, declared, did_you_mean, linked, parse, shorten
from calculators.lengths import histogram_of
from calculators.room import Calculator
from formulas.closed_form import DomainError

TABLES = {"hardware" if name == "accelerators" else name: name for name in tables.TABLES}
"""The database's table that each word on the command line prints."""


class UsageError(ValueError):
    """A command line that was not understood; the message is the one line that is printed."""


class _Parser(argparse.ArgumentParser):
    """An argument parser that leaves it to :func:`main` how a mistake is reported."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without "–" or "…" shows a question mark
    try:
        _run(words)
        sys.stdout.flush()
    except UsageError as error:
        print(f"calculators: {error}", file=sys.stderr)
        return 2
    except InputsError as wrong:
        for each in wrong.errors:
            print(f"calculators: {each}", file=sys.stderr)
        return 2
    except DomainError as beyond:
        print(f"calculators: no answer for these inputs: {beyond}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, `head` say, has seen enough; nothing is left to be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"calculators: the answer could not be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _run(words: list[str]) -> None:
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return
    name, *rest = words
    try:
        link = urlsplit(name)
    except ValueError as error:
        raise UsageError(f"{shorten(name)} is no link: {error}") from None
    page = link.path.rstrip("/").rsplit("/", 1)[-1]
    calculator = catalog.CALCULATORS.get(page or (catalog.ROOMS[0].name if link.query else ""))
    if name in TABLES:
        _print_table(name, rest)
    elif calculator:
        _calculate(calculator, link.query, rest)
    else:
        known = [*catalog.CALCULATORS, *TABLES]
        near = did_you_mean(name, known)
        raise UsageError(f"{shorten(name)} is no calculator; {near + ' ' if near else ''}allowed: {', '.join(known)}")


def _overview() -> str:
    width = max(map(len, [*catalog.CALCULATORS, *TABLES]))
    lines = [
        "python -m calculators NAME [--input VALUE …] [--json] [--check]",
        "",
        "Calculators (NAME --help lists the inputs):",
    ]
    lines += [f"  {name:{width}}  {each.question}" for name, each in catalog.CALCULATORS.items()]
    lines += ["", "Tables of the hardware database (with --json, every field and source):"]
    lines += [f"  {name:{width}}  {len(tables.TABLES[table]())} records" for name, table in TABLES.items()]
    lines += ["", "A link from the app works as NAME too, in quotes: 'ttft?v=1&rate=16&…'"]
    return "\n".join(lines)


def _calculate(calculator: Calculator, query: str, words: list[str]) -> None:
    known = declared(calculator.inputs)
    options = _parse_flags(calculator, known, words)
    texts = _texts_of_link(query, linked(calculator.inputs)) | {
        name: text for name in known if (text := options.pop(name)) is not None
    }
    inputs: Any = parse(calculator.inputs, texts)
    if texts.get("prompt_histogram") and "prompt_tokens" not in texts:  # its own mean, which a page's field would hide
        inputs = replace(inputs, prompt_tokens=max(round(histogram_of(inputs.prompt_histogram).mean), 1))
    if calculator.prepare:
        inputs = calculator.prepare(inputs, frozenset(texts))
    result = calculator.compute(inputs)
    report: dict[str, Any] = {
        "calculator": calculator.name,
        "inputs": as_dict(inputs),
        "results": outputs.as_dict(result),
        "warnings": list(result.warnings),
        "link": links.encode(calculator.path, inputs),
    }
    if options["check"] and calculator.check:
        try:
            report["check"] = outputs.as_dict(calculator.check(inputs))
        except DomainError as nothing_to_simulate:
            report["check"] = None
            report["warnings"].append(str(nothing_to_simulate))
    if options["json"]:
        print(json.dumps(report, allow_nan=False, ensure_ascii=False))
    else:
        print(_for_people(calculator, report, result))


def _texts_of_link(query: str, known: Mapping[str, Input]) -> dict[str, str]:
    texts = {}
    for parameter, values in parse_qs(query, keep_blank_values=True).items():
        if parameter == links.VERSION_PARAMETER:
            if values != [str(links.VERSION)]:
                raise UsageError(
                    f"v = {shorten(','.join(values))}: this release reads links of version {links.VERSION}"
                )
        elif parameter not in known:
            near = did_you_mean(parameter, known)
            raise UsageError(
                f"{shorten(parameter)} in the link is not an input; {near or 'allowed: ' + ', '.join(known)}"
            )
        elif len(values) > 1:
            raise UsageError(f"{parameter} is given {len(values)} times in the link ({shorten(', '.join(values))})")
        else:
            texts[parameter] = values[0]
    return texts


def _parse_flags(calculator: Calculator, known: Mapping[str, Input], words: list[str]) -> dict[str, Any]:
    parser = _Parser(
        prog=f"python -m calculators {calculator.name}", description=calculator.question, allow_abbrev=False
    )
    for name, declaration in known.items():
        # A flag without a value reads as an empty one, whose message says what is allowed.
        parser.add_argument(
            declaration.flag,
            dest=name,
            metavar="VALUE",
            nargs="?",
            const="",
            action="append",
            help=_flag_help(declaration),
        )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    if calculator.check:
        parser.add_argument(
            "--check", action="store_true", help="run the simulation too and print it beside the formula"
        )
    else:
        parser.set_defaults(check=False)
    flags = [action.option_strings[-1] for action in parser._actions]  # noqa: SLF001 - argparse has no public list
    options, unknown = parser.parse_known_args(_join_values([d.flag for d in known.values()], flags, words))
    if unknown:
        word = unknown[0].split("=")[0]
        near = did_you_mean(word, flags)
        raise UsageError(
            f"{shorten(word)} is not an input of {calculator.name}; {near or 'allowed: ' + ' '.join(flags)}"
        )
    return {name: _once(name, value) for name, value in vars(options).items()}


def _once(name: str, value: Any) -> Any:
    """Return the one text that a flag was given, or ``None``; a flag given twice is a mistake."""
    if not isinstance(value, list):
        return value
    if len(value) > 1:
        raise UsageError(f"{name} is given {len(value)} times ({shorten(', '.join(value))})")
    return value[0]


def _join_values(with_value: list[str], flags: list[str], words: list[str]) -> list[str]:
    """Write ``--rate -5`` and ``--rate -inf`` as ``--rate=-inf``, which argparse does not take for a flag."""
    joined: list[str] = []
    for word in words:
        is_value = joined and joined[-1] in with_value and word.startswith("-") and word.split("=")[0] not in flags
        if is_value:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _flag_help(declaration: Input) -> str:
    default = declaration.format(declaration.default) or "empty"
    return f"{declaration.help} Allowed: {declaration.allowed}. Default: {default}.".replace("%", "%%")


def _for_people(calculator: Calculator, report: dict[str, Any], result: Any) -> str:
    known = declared(calculator.inputs)
    rows = [
        (known[name].label, f"({known[name].empty})", "")
        if value is None
        else (known[name].label, outputs.readable(value), known[name].unit)
        for name, value in report["inputs"].items()
    ]
    figures = outputs.spread(type(result))
    nested = {name: value for name, value in report["results"].items() if isinstance(value, dict | list) and value}
    answers = [
        (figures[name].label, outputs.readable(value), figures[name].unit)
        for name, value in report["results"].items()
        if name not in nested and value != [] and not (value is None and not figures[name].unit)
    ]
    parts = [calculator.question, "", _columns(rows), "", _columns(answers)]
    parts += ["\n" + _section(figures[name].label, value) for name, value in nested.items()]
    if report.get("check"):
        parts += ["\n" + _section("Check by simulation", report["check"])]
    parts += [f"\nwarning: {warning}" for warning in report["warnings"]]
    return "\n".join([*parts, "", report["link"]])


def _section(title: str, figures: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return nested figures under a title: one a line, or a line for each row of a table."""
    if isinstance(figures, Mapping):
        lines = [
            _section(name, each) if _holds_table(each) else f"{name}: {_cell(each)}" for name, each in figures.items()
        ]
    else:
        lines = _table(figures).split("\n")
    return "\n".join([title, *("  " + line.replace("\n", "\n  ") for line in lines)])


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = [[name, *(_cell(row[name]) for row in rows)] for name in rows[0]]
    widths = [max(map(len, column)) for column in columns]
    lines = zip(*columns, strict=True)
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _holds_table(value: object) -> bool:
    return _is_table(value) or (isinstance(value, dict) and any(map(_is_table, value.values())))


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {outputs.readable(each)}" for name, each in value.items())
    return ", ".join(map(outputs.readable, value)) if isinstance(value, list) else outputs.readable(value)


def _columns(rows: list[tuple[str, str, str]]) -> str:
    first = max(len(label) for label, _, _ in rows)
    second = max((len(value) for _, value, _ in rows if len(value) <= SHORT), default=0)
    return "\n".join(f"  {label:{first}}  {value:>{second}} {unit}".rstrip() for label, value, unit in rows)


SHORT = 24
"""Characters up to which a value is set right beside the others; sentences are not."""


def _print_table(name: str, words: list[str]) -> None:
    if words not in ([], ["--json"]):
        raise UsageError(f"{shorten(words[0])} is not an option of {name}; allowed: --json")
    records = list(tables.TABLES[TABLES[name]]().values())
    if words:
        print(json.dumps([record.model_dump(mode="json") for record in records], ensure_ascii=False))
        return
    columns = tables.columns(TABLES[name], records)
    texts = [[title, *map(outputs.readable, values)] for title, values in columns.items()]
    widths = [max(map(len, column)) for column in texts]
    for row in zip(*texts, strict=True):
        print("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
