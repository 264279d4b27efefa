"""Settings of all tests."""

from hypothesis import settings

# Time is measured in benchmarks/, and no test asserts it: a busy machine would fail it.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")
