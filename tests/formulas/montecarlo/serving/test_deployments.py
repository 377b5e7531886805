import numpy as np
import pytest

from formulas.montecarlo.serving import (
    AffineStep,
    InstanceSettings,
    KvLink,
    LargestOf,
    Lengths,
    Workload,
    poisson_workload,
    simulate,
    simulate_disaggregated,
)

STEP = LargestOf((AffineStep(1e-3, 2e-4, 1e-7, 1e-4, 1e-8), AffineStep(5e-3, 0.0, 1e-6)))
PREFILL, DECODE = InstanceSettings("prefill", STEP), InstanceSettings("decode", STEP, kv_tokens=4000)
LINK = KvLink(1e5, 4e9, 2e-3)
MIXED = Lengths(100, 0.8, longest=900), Lengths(20, 1.0, longest=200)


def shortest_queue(arrivals, service, instances):
    """First tokens where each prompt takes the same time: who has left by the arrival is no longer counted."""
    ends = [[-1.0] for _ in range(instances)]
    first = []
    for time in arrivals:
        chosen = min(ends, key=lambda queue: sum(end >= time for end in queue[-50:]))
        chosen.append(max(time, chosen[-1]) + service)
        first.append(chosen[-1])
    return first


@pytest.mark.parametrize("instances", [1, 2, 5])
def test_prompts_go_to_the_shortest_queue(instances):
    workload = poisson_workload(0.9 * instances / 0.02, 3000, Lengths(100), Lengths(1), 4)
    service = STEP(100, 0, 0, 0)
    served = simulate(workload, PREFILL, instances)
    np.testing.assert_allclose(served.first_tokens, shortest_queue(workload.arrivals, service, instances), rtol=1e-9)


def test_decode_instances_share_the_load():
    served = simulate(poisson_workload(200.0, 4000, *MIXED, seed=5), DECODE, 4)
    counts = [instance.requests for instance in served.instances]
    assert max(counts) < 1.3 * min(counts)
    assert all(instance.peak_kv_tokens <= 4000 for instance in served.instances)


def test_disaggregated_is_prefill_then_link_then_decode():
    workload = poisson_workload(50.0, 2000, *MIXED, seed=6)
    served = simulate_disaggregated(workload, PREFILL, DECODE, (1, 1), LINK)
    prefilled = simulate(workload, PREFILL)
    np.testing.assert_array_equal(served.first_tokens, prefilled.first_tokens)
    more = workload.output_tokens > 1
    np.testing.assert_array_equal(served.completions[~more], served.first_tokens[~more])
    end, ready = 0.0, []
    for departure, tokens in zip(served.first_tokens[more], workload.prompt_tokens[more], strict=True):
        end = max(end, departure) + tokens * 1e5 / 4e9
        ready.append(end + 2e-3)
    handed = Workload(ready, workload.prompt_tokens[more], workload.output_tokens[more])
    decoded = simulate(handed, DECODE)
    np.testing.assert_allclose(served.completions[more], decoded.completions, rtol=1e-9)


@pytest.mark.parametrize("link", [None, LINK])
def test_disaggregated_loses_nothing(link):
    workload = poisson_workload(150.0, 3000, *MIXED, seed=7)
    served = simulate_disaggregated(workload, PREFILL, DECODE, (3, 2), link)
    prefill, decode = served.instances[:3], served.instances[3:]
    assert len(served) == 3000
    assert np.all(np.isfinite(served.completions))
    assert sum(i.requests for i in prefill) == 3000
    assert sum(i.requests for i in decode) == np.count_nonzero(workload.output_tokens > 1)
    assert sum(i.prompt_tokens for i in prefill) == workload.prompt_tokens.sum()
    assert sum(i.decoded_tokens for i in decode) == (workload.output_tokens - 1).sum()
    handed = served.output_tokens > 1
    sent = 0.0 if link is None else LINK.latency_s + 1e5 * served.prompt_tokens[handed] / 4e9
    assert np.all((served.completions - served.first_tokens)[handed] > sent)


def test_a_slower_link_delays_the_second_token_only():
    workload = poisson_workload(50.0, 2000, *MIXED, seed=6)
    fast, slow = (simulate_disaggregated(workload, PREFILL, DECODE, link=link) for link in (None, LINK))
    np.testing.assert_array_equal(fast.ttft, slow.ttft)
    assert slow.tpot.mean() > fast.tpot.mean()


def stop_after(looks):
    seen = iter(range(looks))
    return lambda: next(seen, None) is None


@pytest.mark.parametrize("kind", ["prefill", "decode", "prefill-first"])
def test_a_stopped_run_is_a_shorter_run(kind):
    workload = poisson_workload(40.0, 2000, *MIXED, seed=8)
    settings = InstanceSettings(kind, STEP)
    served = simulate(workload, settings, 2, stop=stop_after(3))
    assert served.stopped
    assert 3 * 256 <= len(served) < 1000
    shorter = simulate(workload.only(slice(len(served))), settings, 2)
    assert not shorter.stopped
    np.testing.assert_array_equal(served.completions, shorter.completions)
    assert served.instances == shorter.instances


@pytest.mark.parametrize("looks", [3, 10])
def test_a_stopped_disaggregated_run_has_only_finished_requests(looks):
    """Stopped among the prefills, or among the decodes."""
    workload = poisson_workload(40.0, 2000, *MIXED, seed=8)
    served = simulate_disaggregated(workload, PREFILL, DECODE, (2, 2), LINK, stop=stop_after(looks))
    assert served.stopped
    assert 0 < len(served) < 2000
    assert np.all(np.isfinite(served.completions))
    assert sum(i.requests for i in served.instances[2:]) == np.count_nonzero(served.output_tokens > 1)
    if looks == 3:
        shorter = simulate_disaggregated(workload.only(slice(len(served))), PREFILL, DECODE, (2, 2), LINK)
        np.testing.assert_array_equal(served.completions, shorter.completions)


def test_stopped_before_it_began():
    served = simulate(poisson_workload(40.0, 500, *MIXED, seed=8), PREFILL, stop=lambda: True)
    assert served.stopped
    assert len(served) == 0


def test_progress_rises_to_one():
    workload = poisson_workload(40.0, 2000, *MIXED, seed=8)
    one, both = [], []
    simulate(workload, PREFILL, progress=one.append)
    simulate_disaggregated(workload, PREFILL, DECODE, progress=both.append)
    for shares in (one, both):
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
    assert len(both) > len(one) == 8


def test_same_seed_same_run():
    runs = [simulate_disaggregated(poisson_workload(60.0, 500, *MIXED, seed=s), PREFILL, DECODE) for s in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0].completions, runs[1].completions)
    assert runs[0].instances == runs[1].instances
    assert not np.array_equal(runs[0].completions, runs[2].completions)


def test_deployments_that_make_no_sense():
    workload = Workload([0.0], [10], [2])
    with pytest.raises(ValueError, match="at least one instance"):
        simulate(workload, PREFILL, 0)
    with pytest.raises(ValueError, match="prefill instances and decode instances"):
        simulate_disaggregated(workload, DECODE, PREFILL)
