"""Settings that hold for all tests."""

from hypothesis import settings

# No limit on the time of an example: the machines that run this are shared, and slow is not wrong.
settings.register_profile("headroom", deadline=None)
settings.load_profile("headroom")
