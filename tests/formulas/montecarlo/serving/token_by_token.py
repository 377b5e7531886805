"""One instance again, without any shortcut: every sequence is touched in every step."""

from math import inf


class TokenByToken:
    """Tokens out, tokens cached, and times of every request, as lists."""

    def __init__(self, workload, settings):
        self.arrivals = workload.arrivals.tolist()
        self.prompts, self.outputs = workload.prompt_tokens.tolist(), workload.output_tokens.tolist()
        self.settings, self.count = settings, len(workload)
        self.wanted = [1] * self.count if settings.kind == "prefill" else self.outputs
        there = settings.kind == "decode"
        self.tokens = [int(there)] * self.count
        self.cached = [prompt * there for prompt in self.prompts]
        self.first, self.completion = [inf] * self.count, [inf] * self.count
        self.waiting, self.inside = [], []
        self.come = self.peak = 0

    def run(self):
        time = 0.0
        while self.come < self.count or self.waiting or self.inside:
            if not self.waiting and not self.inside:
                time = max(time, self.arrivals[self.come])
            while self.come < self.count and self.arrivals[self.come] <= time:
                self.waiting.append(self.come)
                self.come += 1
            chunks, decoding = self.plan()
            time += self.duration(chunks, decoding)
            self.work(chunks, decoding, time)
        return self

    def enter(self):
        """Whether the first who waits could come in."""
        places, kv = self.settings.max_batch or inf, self.settings.kv_tokens or inf
        if not self.waiting or len(self.inside) >= places:
            return False
        if sum(self.prompts[i] + self.wanted[i] - 1 for i in [*self.inside, self.waiting[0]]) > kv:
            return False
        self.inside.append(self.waiting.pop(0))
        return True

    def plan(self):
        decoding = [i for i in self.inside if self.cached[i] >= self.prompts[i]]
        if self.settings.kind == "decode":
            while self.enter():
                pass
            return {}, list(self.inside)
        if self.settings.kind == "chunked":
            return self.chunks(self.settings.chunk_tokens - len(decoding)), decoding
        if self.enter():
            return {self.inside[-1]: self.prompts[self.inside[-1]]}, []
        return {}, decoding

    def chunks(self, room):
        found = {}
        while room > 0:
            started = [i for i in self.inside if self.cached[i] < self.prompts[i] and i not in found]
            if not started and not self.enter():
                break
            chosen = started[0] if started else self.inside[-1]
            found[chosen] = min(room, self.prompts[chosen] - self.cached[chosen])
            room -= found[chosen]
        return found

    def duration(self, chunks, decoding):
        total = sum(chunks.values())
        pairs = sum(n * self.cached[i] + n * n / 2 for i, n in chunks.items())
        equivalent = pairs / total - total / 2 if total else 0
        context = sum(self.prompts[i] + self.tokens[i] for i in decoding)
        return self.settings.step_time(total, equivalent, len(decoding), context)

    def work(self, chunks, decoding, time):
        for i, n in chunks.items():
            self.cached[i] += n
        for i in decoding:
            self.cached[i] += 1
        for i in decoding + [i for i in chunks if self.cached[i] == self.prompts[i]]:
            self.tokens[i] += 1
            self.first[i] = min(self.first[i], time)
            if self.tokens[i] == self.wanted[i]:
                self.completion[i] = time
        self.peak = max(self.peak, sum(self.cached[i] for i in self.inside))
        self.inside = [i for i in self.inside if self.completion[i] == inf]
