"""The named sets of step-time assumptions."""

import pytest

from hardware_db import DatabaseError, StepAssumptions, assumptions, load_folder

SET = {
    "name": '"A set"',
    "compute_efficiency": "0.6",
    "memory_efficiency": "0.8",
    "link_efficiency": "1.0",
    "step_overhead_ms": "1.0",
    "allreduce_latency_us": "2.0",
    "lm_head_tokens": '"every"',
    "counts_kv_writes": "false",
    "accuracy": '"Not known."',
    "sources": '["course-lecture-5"]',
    "confidence": '"one-source"',
}


def load(folder, **changes):
    lines = "\n".join(f"{key} = {value}" for key, value in (SET | changes).items() if value is not None)
    (folder / "sets.toml").write_text(f"[mine]\n{lines}\n")
    return load_folder(folder, StepAssumptions)


def test_the_course_set_is_the_first_and_has_its_round_numbers():
    name, course = next(iter(assumptions().items()))
    assert name == "course"
    assert (course.compute_efficiency, course.memory_efficiency) == (0.60, 0.80)
    assert (course.step_overhead_ms, course.allreduce_latency_us) == (1.0, 2.0)
    assert (course.lm_head_tokens, course.counts_kv_writes) == ("every", False)


def test_every_set_says_how_well_it_predicts():
    for each in assumptions().values():
        assert each.accuracy.endswith(".")
        assert each.citations()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("compute_efficiency", "1.2"),
        ("memory_efficiency", "0.0"),
        ("link_efficiency", "nan"),
        ("step_overhead_ms", "-1.0"),
        ("allreduce_latency_us", "inf"),
        ("lm_head_tokens", '"some"'),
        ("counts_kv_writes", '"no"'),
        ("accuracy", None),
        ("sources", "[]"),
        ("sources", '["nobody"]'),
        ("compute_efficency", "0.6"),
    ],
)
def test_a_faulty_set_is_refused_by_file_record_and_field(tmp_path, field, value):
    assert load(tmp_path)
    with pytest.raises(DatabaseError) as caught:
        load(tmp_path, **{field: value})
    message = str(caught.value)
    assert "sets.toml" in message
    assert "mine" in message
    assert field in message
