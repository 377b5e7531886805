"""An input is declared once: what it reads, what it refuses and in which words."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculators import inputs as kit
from calculators.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class Example:
    rate: float = kit.number("Rate", unit="requests/s", low=0.001, high=1e6, default=16, help="…")
    service_ms: float | None = kit.number(
        "Service", unit="ms", low=0.001, high=1e7, default=None, help="…", empty="computed"
    )
    tp: int = kit.integer("Degree", low=1, high=8, default=1, help="…")
    model: str = kit.choice("Model", options=["llama-3.1-8b", "llama-3.1-70b", "opt-66b"], default="opt-66b", help="…")
    find: str = kit.text("Find", help="…")


KNOWN = kit.declared(Example)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rate", "16", 16.0),
        ("rate", " 1.2345678e-02 ", 0.012345678),
        ("rate", "0.1", 0.1),
        ("service_ms", "", None),
        ("service_ms", "50", 50.0),
        ("tp", "4", 4),
        ("tp", "4.0", 4),
        ("model", "llama-3.1-8b", "llama-3.1-8b"),
        ("find", "", ""),
        ("find", "<b>nvidia</b>", "<b>nvidia</b>"),
        ("find", "h100\u00a0sxm\u202ex", "h100 sxm x"),
    ],
)
def test_reads(name, text, value):
    parsed = KNOWN[name].parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("rate", "abc", "not a finite number"),
        ("rate", "nan", "finite"),
        ("rate", "inf", "finite"),
        ("rate", "-inf", "finite"),
        ("rate", "-5", "0.001 to 1,000,000 requests/s"),
        ("rate", "1e7", "out of range"),
        ("rate", "1_000", "1_000"),
        ("rate", "", "a value is needed"),
        ("rate", "0x10", "not a finite number"),
        ("tp", "3.7", "whole number"),
        ("tp", "9", "1 to 8"),
        ("model", "lama-3.1-8b", "did you mean llama-3.1-8b"),
        ("model", "OPT-66B", "did you mean opt-66b"),
        ("model", "zzz", "one of llama-3.1-8b, llama-3.1-70b, opt-66b"),
        ("find", "x" * 81, "80 characters"),
    ],
)
def test_refuses_in_one_line_that_names_input_value_and_what_is_allowed(name, text, said):
    with pytest.raises(kit.InputError) as caught:
        KNOWN[name].parse(text)
    message = str(caught.value)
    assert message.startswith(f"{name} = ")
    assert said in message
    assert "allowed" in message
    assert "\n" not in message


def test_a_long_or_unprintable_value_is_shortened_in_the_message():
    with pytest.raises(kit.InputError) as caught:
        KNOWN["model"].parse("\x1b[31m" + "y" * 5000)
    assert len(str(caught.value)) < 300
    assert "\x1b" not in str(caught.value)


@given(st.floats(0.001, 1e6))
def test_a_number_survives_the_way_through_a_link_to_the_last_digit(value):
    assert KNOWN["rate"].parse(KNOWN["rate"].format(value)) == value


def test_whole_floats_are_written_without_a_point():
    assert KNOWN["rate"].format(16.0) == "16"


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "16", None, -1.0, [1]])
def test_typed_values_are_checked_too(value):
    with pytest.raises(kit.InputsError):
        kit.build(Example, {"rate": value})


def test_all_wrong_values_are_reported_at_once():
    with pytest.raises(kit.InputsError) as caught:
        kit.build(Example, {"rate": -1.0, "tp": 99, "model": "opt-66b"})
    assert [error.name for error in caught.value.errors] == ["rate", "tp"]


def test_an_unknown_name_is_a_mistake_of_the_programmer():
    with pytest.raises(TypeError, match="speed"):
        kit.build(Example, {"speed": 1})


@pytest.mark.parametrize("declaration", kit.declared(Scenario).values(), ids=lambda d: d.name)
def test_every_shared_input_explains_itself_and_its_default_is_allowed(declaration):
    assert declaration.label
    assert declaration.help.endswith(".")
    assert declaration.check(declaration.default) == declaration.default
    assert declaration.parse(declaration.format(declaration.default)) == declaration.default
    assert declaration.flag == "--" + declaration.name.replace("_", "-")
