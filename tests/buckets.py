"""Cloud Storage on this machine: an emulator of its API, and the client that the workloads use."""

import socket
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import fsspec
import pytest
from gcp_storage_emulator.server import create_server


@dataclass(frozen=True, slots=True)
class Bucket:
    """An empty bucket.

    Attributes:
        name: its name.
        files: fsspec's file system of Cloud Storage.
    """

    name: str
    files: Any


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Generator[Bucket]:
    """A bucket of an emulator; clients in this process and in those that it starts find it."""
    name = f"test-{uuid4().hex[:8]}"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket=name)
    server.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    # Neither credentials of the machine are looked for, nor the kind of the bucket, with another API.
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    files: Any = fsspec.filesystem("gs", use_listings_cache=False)
    yield Bucket(name, files)
    files.clear_instance_cache()
    server.stop()
