"""Sentences count in the singular where there is one of a thing, on every calculator."""

import re

import pytest

from calculators import catalog
from calculators.inputs import InputsError, declared, parse
from calculators.outputs import counted

NOUNS = "accelerators|chips|experts|instances|layers|nodes|positions|prompts|ranks|reasons|requests|sequences|stages|steps|tokens"
WRONG = re.compile(rf"(?<![\d.,])1\*{{0,2}} (\w+ )?({NOUNS})\b(?!/)")
LENGTHS = ("prompt_tokens", "output_tokens", "draft_tokens", "tokens")
COUNTS = ("batch", "gpus", "fleet_gpus", "nodes", "node_gpus", "most_gpus", "pp", "tp", "servers")


def test_the_pattern_finds_what_it_is_for():
    assert WRONG.search("in a step of 1 sequences")
    assert WRONG.search("**1** tokens")
    assert WRONG.search("1 decode instances")
    assert not WRONG.search("21 tokens, 0.1 tokens, 1 sequence, at 1 requests/s, 1,000 tokens")


@pytest.mark.parametrize("count", [1, 1.0, 0.99999])
def test_what_reads_one_is_singular(count):
    assert counted(count, "batch", "batches") == "1 batch"


@pytest.mark.parametrize("ones", [LENGTHS, COUNTS], ids=["lengths", "counts"])
@pytest.mark.parametrize("calculator", catalog.CALCULATORS.values(), ids=lambda each: each.name)
def test_one_of_a_thing_is_not_several(calculator, ones):
    try:
        inputs = parse(calculator.inputs, {name: "1" for name in ones if name in declared(calculator.inputs)})
        result = calculator.compute(inputs)
    except InputsError as refused:
        sentences = [str(error) for error in refused.errors]
    else:
        sentences = [calculator.answer(inputs, result), *result.warnings]
    assert sentences
    for said in sentences:
        assert not WRONG.search(said), said
