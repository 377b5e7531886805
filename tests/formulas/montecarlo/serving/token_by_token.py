"""The same instances again, without any shortcut: every sequence is touched in every step."""

from math import inf


def token_by_token(arrivals, prompts, outputs, settings):
    """First tokens, completions, and the largest cache occupied at any time."""
    count = len(arrivals)
    tokens = [0] * count if settings.kind != "decode" else [1] * count
    cached = [0] * count if settings.kind != "decode" else list(prompts)
    wanted = [1] * count if settings.kind == "prefill" else list(outputs)
    first, completion = [inf] * count, [inf] * count
    waiting, inside, time, nxt, peak = [], [], 0.0, 0, 0
    kv, places = settings.kv_tokens or inf, settings.max_batch or inf

    def may_enter():
        return (
            waiting
            and len(inside) < places
            and sum(prompts[i] + wanted[i] - 1 for i in [*inside, waiting[0]]) <= kv
        )  # fmt: skip

    def enter_until_full():
        while may_enter():
            inside.append(waiting.pop(0))

    while nxt < count or waiting or inside:
        if not waiting and not inside:
            time = max(time, arrivals[nxt])
        while nxt < count and arrivals[nxt] <= time:
            waiting.append(nxt)
            nxt += 1
        decoding = [i for i in inside if cached[i] >= prompts[i]]
        chunks = {}
        if settings.kind == "decode":
            enter_until_full()
            decoding = list(inside)
        elif settings.kind == "chunked":
            room = settings.chunk_tokens - len(decoding)
            while room > 0:
                opened = [i for i in inside if cached[i] < prompts[i] and i not in chunks]
                if not opened and may_enter():
                    inside.append(waiting.pop(0))
                    opened = inside[-1:]
                if not opened:
                    break
                chunks[opened[0]] = min(room, prompts[opened[0]] - cached[opened[0]])
                room -= chunks[opened[0]]
        elif may_enter():
            inside.append(waiting.pop(0))
            chunks, decoding = {inside[-1]: prompts[inside[-1]]}, []
        total = sum(chunks.values())
        pairs = sum(n * cached[i] + n * n / 2 for i, n in chunks.items())
        equivalent = pairs / total - total / 2 if total else 0
        time += settings.step_time(total, equivalent, len(decoding), sum(prompts[i] + tokens[i] for i in decoding))
        for i, n in chunks.items():
            cached[i] += n
        for i in decoding + [i for i in chunks if cached[i] == prompts[i]]:
            cached[i] = max(cached[i], prompts[i] + tokens[i])
            tokens[i] += 1
            first[i] = min(first[i], time)
            if tokens[i] == wanted[i]:
                completion[i] = time
        peak = max(peak, sum(cached[i] for i in inside))
        inside = [i for i in inside if completion[i] == inf]
    return first, completion, peak
