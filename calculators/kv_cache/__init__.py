"""How large is the KV cache, and what does moving it cost."""

from calculators.kv_cache.check import check
from calculators.kv_cache.compute import KvCacheInputs, compute
from calculators.kv_cache.wording import answer
from calculators.room import Calculator

ROOM = Calculator(
    name="kv_cache",
    title="KV cache",
    question="How large is the KV cache of a request, how many fit, and what does moving one between pools cost?",
    icon=":material/swap_horiz:",
    section="First token",
    inputs=KvCacheInputs,
    compute=compute,
    answer=answer,
    check=check,
)
"""The catalog's entry."""
