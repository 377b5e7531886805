"""Right values where link figures are known to have gone wrong: both directions for one, one link for all."""

import pytest

from hardware_db import links


@pytest.mark.parametrize(
    ("link", "gb_s", "headline_gb_s"),
    [
        ("nvlink3", 300, 600),
        ("nvlink4", 450, 900),
        ("nvlink5", 900, 1800),
        ("nvlink6", 1800, 3600),
        ("c2c-grace", 450, 900),
        ("xgmi-mi300x", 448, 896),
        ("ici-v5p", 600, 1200),
        ("neuronlink3", 640, 1280),
        ("gaudi3-roce", 525, 1050),
        ("pcie5-x16", 63, 126),
        ("ib-ndr", 50, 100),
    ],
)
def test_one_direction_and_headline(link, gb_s, headline_gb_s):
    assert links()[link].bytes_s == gb_s * 1e9
    assert links()[link].both_directions_gb_s == headline_gb_s


def test_seven_links_of_64_are_not_one_of_448():
    xgmi = links()["xgmi-mi300x"]
    assert (xgmi.links, xgmi.per_link_gb_s) == (7, 64)


def test_latency_is_in_seconds_or_absent():
    assert links()["nvlink4"].latency_s == pytest.approx(10e-6)
    assert links()["c2c-grace"].latency_s is None


def test_what_large_messages_reach():
    # NCCL ring on 8 H200: 367 of 450.
    assert links()["nvlink4"].effective_bytes_s == pytest.approx(367e9, rel=0.01)
    assert links()["ub-link"].effective_bytes_s is None


def test_kinds():
    kinds = [link.kind for link in links().values()]
    expected = {"scale-up": 19, "scale-out": 17, "scale-up-and-out": 2, "host": 4, "die-to-die": 2}
    assert {kind: kinds.count(kind) for kind in set(kinds)} == expected
