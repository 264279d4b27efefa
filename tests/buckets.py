"""Cloud Storage on this machine: an emulator of its API, and the client that the workloads use."""

import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
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


_ENVIRONMENT: Final = {
    # Neither credentials of the machine are looked for, nor the kind of the bucket, with another API.
    "NO_GCE_CHECK": "true",
    "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
}


@contextmanager
def emulator(bucket: str, directory: Path | None = None) -> Generator[Mapping[str, str]]:
    """Run an emulator with a bucket; return the environment of its clients.

    Args:
        bucket: name of the bucket.
        directory: directory of the buckets, each with its objects as files; None for memory.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data: dict[str, Any] = {"in_memory": True} if directory is None else {"data_dir": str(directory.parent)}
    server = create_server("127.0.0.1", port, default_bucket=bucket, **data)
    server.start()
    if directory is not None:
        directory.symlink_to(directory.parent / ".cloudstorage", target_is_directory=True)
    yield {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}", **_ENVIRONMENT}
    server.stop()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Generator[Bucket]:
    """A bucket of an emulator; clients in this process and in those that it starts find it."""
    name = f"test-{uuid4().hex[:8]}"
    with emulator(name) as environment:
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        files: Any = fsspec.filesystem("gs", use_listings_cache=False)
        yield Bucket(name, files)
        files.clear_instance_cache()
