"""A scenario as a link and back; what a damaged link says."""

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculators import links
from calculators.inputs import Choice, Integer, Number, Text, as_dict, build, declared
from calculators.scenario import Scenario

KNOWN = declared(Scenario)


def values(declaration):
    match declaration:
        case Integer():
            some = st.integers(int(declaration.low), int(declaration.high))
        case Number():
            some = st.floats(declaration.low, declaration.high)
        case Text():
            some = st.text("0123456789:, x", max_size=40).map(lambda text: text.strip())
        case Choice():
            some = st.sampled_from(declaration.options)
    return some | st.none() if declaration.empty else some


def query_of(link):
    return parse_qs(urlsplit(link).query, keep_blank_values=True)


@given(st.fixed_dictionaries({name: values(declaration) for name, declaration in KNOWN.items()}))
def test_every_value_comes_back_to_the_last_digit(scenario):
    inputs = build(Scenario, scenario)
    query = query_of(links.encode("ttft", inputs))
    assert query.pop("v") == ["1"]
    assert {name: KNOWN[name].parse(texts[0]) for name, texts in query.items()} == as_dict(inputs)
    assert links.misunderstandings(query | {"v": ["1"]}, KNOWN, as_dict(inputs)) == []


def test_a_link_spells_out_every_default_and_its_version():
    link = links.encode("ttft", Scenario())
    assert link.startswith("ttft?v=1&rate=50&prompt_tokens=512&")
    assert set(query_of(link)) == {"v", *KNOWN}


@pytest.mark.parametrize(
    ("parameter", "texts", "said"),
    [
        ("rate", ["abc"], 'rate = "abc": not a finite number'),
        ("rate", ["-5"], "out of range"),
        ("rate", ["60"], "could not be set"),
        ("rate", ["50", "50"], "2 times"),
        ("tp", ["3.7"], "whole number"),
        ("model", ["Llama"], "not known"),
        ("service_ms", ["<script>alert(1)</script>"], "In use: none (computed)"),
        ("rat", ["7"], "did you mean rate"),
        ("utm_source", ["x"], "not an input of this page"),
        ("v", ["2"], "links of version 1"),
        ("v", ["<b>"], "links of version 1"),
    ],
)
def test_what_was_not_understood_is_named_with_what_is_used_instead(parameter, texts, said):
    (found,) = links.misunderstandings({parameter: texts}, KNOWN, as_dict(Scenario()))
    assert found.parameter == parameter
    assert said in found.sentence
    assert "\n" not in found.sentence
    assert len(found.sentence) < 500
