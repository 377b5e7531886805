"""Settings that hold for all tests."""

import os

from hypothesis import settings

# No limit on the time of an example: the machines that run this are shared, and slow is not wrong.
# The same examples on every run, so that a change is judged by what it changed; `explore` draws new ones.
settings.register_profile("headroom", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "headroom"))
