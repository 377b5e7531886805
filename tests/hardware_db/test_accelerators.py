"""Right values where tables of accelerators are known to have gone wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardware_db import UnsupportedDataType, accelerators

CHIPS = sorted(accelerators())


# Each pair was found elsewhere with the sparse, the non-tensor or the superchip figure.
@pytest.mark.parametrize(
    ("chip", "dtype", "tflops"),
    [
        ("h100-sxm", "bf16", 989),
        ("h100-sxm", "fp8", 1979),
        ("h100-pcie", "bf16", 756.5),
        ("h200-sxm", "bf16", 989),
        ("gh200-96", "bf16", 989),
        ("l40s", "bf16", 362.05),
        ("l40s", "fp8", 733),
        ("gb200", "bf16", 2500),
        ("gb200", "fp4", 10000),
        ("b300-sxm", "fp4", 14000),
        ("b300-sxm", "int8", 153.5),
        ("rubin-r200", "fp4", 35000),
        ("mi455x", "fp8", 10000),
        ("mi210", "int8", 181),
        ("mi250x", "int8", 383),
        ("trainium2", "bf16", 667),
        ("trainium3", "bf16", 671),
        ("rtx-4090", "fp16", 165.2),
        ("rtx-a6000", "bf16", 154.8),
        ("gaudi3", "bf16", 1677),
        ("a10g", "bf16", 70),
    ],
)
def test_rates_are_dense(chip, dtype, tflops):
    assert accelerators()[chip].peak_flops(dtype) == pytest.approx(tflops * 1e12)


@pytest.mark.parametrize(
    ("chip", "dtype"),
    [
        ("a100-80-sxm", "fp8"),
        ("v100-sxm2-32", "bf16"),
        ("t4", "bf16"),
        ("h100-sxm", "fp4"),
        ("arc-pro-b60", "fp8"),
        ("tpu-8i", "bf16"),
        ("h100-sxm", "float8"),
    ],
)
def test_a_missing_data_type_is_an_error_that_says_what_there_is(chip, dtype):
    with pytest.raises(UnsupportedDataType) as caught:
        accelerators()[chip].peak_flops(dtype)
    message = str(caught.value)
    assert accelerators()[chip].name in message
    assert dtype in message
    for has in accelerators()[chip].data_types:
        assert has in message


def test_rates_that_do_not_double_are_kept_as_they_are():
    chips = accelerators()
    assert chips["trainium3"].peak_flops("fp4") == chips["trainium3"].peak_flops("fp8")
    assert chips["tpu-v5p"].peak_flops("fp8") == chips["tpu-v5p"].peak_flops("bf16")
    assert chips["gaudi3"].peak_flops("fp16") < chips["gaudi3"].peak_flops("bf16") / 3


@pytest.mark.parametrize(
    ("chip", "mib"),
    [
        ("t4", 15360),
        ("l4", 23034),
        ("a10g", 23028),
        ("l40s", 46068),
        ("a100-40-sxm", 40960),
        ("a100-80-sxm", 81920),
        ("h100-sxm", 81559),
        ("h100-pcie", 81559),
        ("h100-nvl", 95830),
        ("h20", 97871),
        ("gh200-96", 97871),
        ("h200-sxm", 143771),
        ("b200-sxm", 183359),
        ("gb200", 189471),
        ("b300-sxm", 275040),
        ("gb300", 284208),
        ("rtx-4090", 24564),
        ("rtx-5090", 32607),
        ("rtx-pro-6000-bw", 97887),
        ("mi300x", 192 * 1024),
        ("mi325x", 256 * 1024),
        ("tpu-v5p", 95 * 1024),
    ],
)
def test_memory_is_what_the_driver_reports(chip, mib):
    assert accelerators()[chip].memory_bytes == mib * 2**20


def test_bandwidth_of_aws_parts_is_decimal():
    assert accelerators()["inferentia2"].memory_bandwidth_bytes_s == pytest.approx(820 * 2**30, rel=1e-3)


@pytest.mark.parametrize(
    ("chip", "one_way_gb_s", "peer_gb_s"),
    [
        ("h100-sxm", 450, 450),
        ("h800", 200, 200),
        ("b200-sxm", 900, 900),
        ("rubin-r200", 1800, 1800),
        ("mi300x", 448, 64),
        ("mi355x", 535.5, 76.5),
        ("tpu-v5p", 600, 100),
        ("gaudi3", 525, 75),
        ("trainium2", 640, None),
    ],
)
def test_links_are_one_direction(chip, one_way_gb_s, peer_gb_s):
    record = accelerators()[chip]
    assert record.scale_up_bytes_s == one_way_gb_s * 1e9
    assert record.scale_up_peer_bytes_s == (None if peer_gb_s is None else peer_gb_s * 1e9)


@pytest.mark.parametrize(
    ("chip", "ranks", "gb_s"),
    [
        ("mi300x", 2, 64),
        ("mi300x", 4, 192),
        ("mi300x", 8, 448),
        ("h100-sxm", 2, 450),
        ("h100-sxm", 8, 450),
        ("gb200", 72, 900),
        ("trainium2", 2, 640),  # no rate to one peer published: the total, an upper bound
    ],
)
def test_a_group_gets_its_own_links_only(chip, ranks, gb_s):
    assert accelerators()[chip].group_bandwidth_bytes_s(ranks) == gb_s * 1e9


@pytest.mark.parametrize(
    ("chip", "ranks"),
    [
        ("l40s", 2),  # no scale-up link at all
        ("a100-80-pcie", 4),  # the bridge joins two
        ("h100-sxm", 16),  # beyond the server
    ],
)
def test_a_group_that_the_link_does_not_reach_has_none(chip, ranks):
    assert accelerators()[chip].group_bandwidth_bytes_s(ranks) is None


def test_a_part_without_scale_up_link_reaches_peers_over_the_host():
    l40s = accelerators()["l40s"]
    assert l40s.scale_up_bytes_s is None
    assert l40s.peer_over_host_bytes_s == l40s.host_bytes_s == 31.5e9
    assert accelerators()["h100-sxm"].peer_over_host_bytes_s is None


def test_a_group_of_no_rank_is_an_error():
    with pytest.raises(ValueError, match="at least one rank, not 0"):
        accelerators()["h100-sxm"].group_bandwidth_bytes_s(0)


@given(chip=st.sampled_from(CHIPS), ranks=st.integers(2, 20_000))
def test_more_ranks_never_get_less_and_never_more_than_all_links(chip, ranks):
    record = accelerators()[chip]
    smaller, larger = record.group_bandwidth_bytes_s(ranks), record.group_bandwidth_bytes_s(ranks + 1)
    if record.scale_up_bytes_s is None:
        assert smaller is None
    if larger is not None:
        assert smaller is not None
        assert 0 < smaller <= larger <= record.scale_up_bytes_s


def test_tiered_machines_say_so():
    corsair = accelerators()["dmatrix-corsair"]
    fast, slow = corsair.memory_tiers
    assert (fast.bytes, slow.bytes) == (2 * 10**9, 256 * 10**9)
    assert fast.bandwidth_gb_s / slow.bandwidth_gb_s == 375
    assert [tier.name for tier in accelerators()["sambanova-sn40l"].memory_tiers] == ["SRAM", "HBM3", "DDR5"]
    assert len(accelerators()["groq-lpu1"].memory_tiers) == 1
    assert accelerators()["h100-sxm"].memory_tiers == ()


def test_rates_of_unknown_sparsity_are_marked():
    assert accelerators()["cerebras-wse3"].sparsity_unstated == ("fp16",)
    assert accelerators()["h100-sxm"].sparsity_unstated == ()


def test_prices_are_a_span_with_sources():
    price = accelerators()["h100-sxm"].price_usd_per_hour
    assert (price.low, price.high) == (1.99, 5.0)
    assert len(price.source) == 5
    assert sum(chip.price_usd_per_hour is not None for chip in accelerators().values()) == 18
