"""Pulumi's mocks around each test."""

import asyncio
from collections.abc import Iterator

import pulumi
import pytest
from pulumi.runtime import settings

from tests.unit.mocks.mocked import Mocks, Monitor


@pytest.fixture(autouse=True)
def mocks() -> Iterator[Mocks]:
    """Mocks for one program, on an event loop of its own: Python 3.14 has none by default, and a second
    program on the same one would see the first one's resources (pulumi#24338)."""
    mocks = Mocks()
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        pulumi.runtime.set_mocks(mocks, preview=False, monitor=Monitor(mocks))
        yield mocks
    asyncio.set_event_loop(None)
    settings.reset_options()
