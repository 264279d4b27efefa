"""Recorded calls of providers: a file for each command in the directory of `--record`, a call in each line.

Only the clouds' own providers are recorded. That of Kubernetes is the real one in rehearsals as well.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from google.rpc import status_pb2  # pyright: ignore[reportMissingTypeStubs]
from pulumi.runtime.proto import plugin_pb2, provider_pb2

from ebbtide.analysis.recording.scrubbing import Scrubber
from ebbtide.analysis.recording.values import Plain
from ebbtide.analysis.recording.wire import properties
from ebbtide.errors import EbbtideError

PACKAGES: Final = ("gcp", "azure-native")
"""Packages whose providers are recorded."""

_DEBUG_TAG: Final = "__internal"  # the SDK's metadata on inputs


class ProviderCallError(EbbtideError):
    """Calls cannot be recorded, or a recording cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCall:
    """A call of a provider, scrubbed.

    Attributes:
        package: the provider's package, such as `gcp`.
        connection: number of the provider resource, to which the settings of `Configure` apply.
        method: name in Pulumi's protocol, such as `Create`.
        urn: the resource's URN.
        request: the request's fields.
        answer: the answer's fields; None if the call failed.
        error: the provider's message; None if it succeeded.
        seconds: its duration.
        partial: what a failed call has left, such as a resource whose creation did not end: its `id` and
            `properties`, and the reasons; None for nothing.
    """

    package: str
    connection: int
    method: str
    urn: str
    request: Mapping[str, Any]
    answer: Mapping[str, Any] | None
    error: str | None
    seconds: float
    partial: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """A recorded method of Pulumi's protocol.

    Attributes:
        requested: recorded fields of a request.
        answered: recorded fields of an answer.
    """

    request: type[Message]
    answer: type[Message]
    requested: tuple[str, ...]
    answered: tuple[str, ...] = ()


METHODS: Final[Mapping[str, Method]] = {
    "GetPluginInfo": Method(Empty, plugin_pb2.PluginInfo, (), ("version",)),
    "Configure": Method(provider_pb2.ConfigureRequest, provider_pb2.ConfigureResponse, ("args",)),
    "Check": Method(
        provider_pb2.CheckRequest, provider_pb2.CheckResponse, ("olds", "news"), ("inputs", "failures")
    ),
    "Diff": Method(
        provider_pb2.DiffRequest,
        provider_pb2.DiffResponse,
        ("id", "olds", "news", "old_inputs", "ignoreChanges"),
        ("changes", "diffs", "replaces", "deleteBeforeReplace"),
    ),
    "Create": Method(
        provider_pb2.CreateRequest,
        provider_pb2.CreateResponse,
        ("properties", "preview", "timeout"),
        ("id", "properties"),
    ),
    "Read": Method(
        provider_pb2.ReadRequest,
        provider_pb2.ReadResponse,
        ("id", "properties", "inputs"),
        ("id", "properties", "inputs"),
    ),
    "Update": Method(
        provider_pb2.UpdateRequest,
        provider_pb2.UpdateResponse,
        ("id", "olds", "news", "old_inputs", "ignoreChanges", "preview", "timeout"),
        ("properties",),
    ),
    "Delete": Method(provider_pb2.DeleteRequest, Empty, ("id", "properties", "timeout")),
}
"""The recorded methods. `GetPluginInfo` has the version of the provider, and `Configure` the project or
subscription of a connection's calls."""


def _partial(details: bytes | None) -> dict[str, Plain] | None:
    """Parse the resource that a failed call has left from the details of its error.

    Source: pulumi 3.259, proto/pulumi/provider.proto, `ErrorResourceInitFailed`.
    """
    failed = provider_pb2.ErrorResourceInitFailed()
    for detail in status_pb2.Status.FromString(details or b"").details:
        if detail.Unpack(failed):
            return _plain(failed, ("id", "properties", "inputs", "reasons"))
    return None


def _plain(message: Message, fields: tuple[str, ...]) -> dict[str, Plain]:
    return {name: _field(message, name) for name in fields}


def _field(message: Message, name: str) -> Plain:
    value: Any = getattr(message, name)
    descriptor = message.DESCRIPTOR.fields_by_name[name]
    if descriptor.enum_type is not None:
        return descriptor.enum_type.values_by_number[value].name
    if isinstance(value, Message):
        return {key: item for key, item in properties(value).items() if key != _DEBUG_TAG}  # pyright: ignore[reportArgumentType] - all are structs
    if isinstance(value, bool | int | float | str):
        return value
    return [
        item if isinstance(item, str) else {"property": item.property, "reason": item.reason}
        for item in value
    ]


class Recorder:
    """Writer of the calls of one command."""

    def __init__(self, directory: Path, command: str) -> None:
        """Create the file, which only its owner can read.

        Args:
            directory: the directory of the recording, created if missing.
            command: name of the command.

        Raises:
            ProviderCallError: the directory cannot be written.
        """
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            number = len(list(directory.glob("*.jsonl"))) + 1
            self.file = directory / f"{number:03}-{command}.jsonl"
            self.file.touch(mode=0o600, exist_ok=False)
        except OSError as error:
            raise ProviderCallError(f"--record cannot write to {directory}: {error.strerror}.") from None
        self._scrubber = Scrubber()
        self._lock = threading.Lock()

    def record(
        self,
        package: str,
        connection: int,
        method: str,
        request: bytes,
        answer: bytes | None,
        error: str | None,
        seconds: float,
        details: bytes | None = None,
    ) -> None:
        """Write a call. Unless the method is recorded, nothing is written.

        Args:
            package: as in `ProviderCall`.
            connection: as in `ProviderCall`.
            method: as in `ProviderCall`.
            answer: the answer's bytes; None if the call failed.
            error: as in `ProviderCall`.
            seconds: as in `ProviderCall`.
            details: the bytes of the error's `google.rpc.Status`; None for none.
        """
        known = METHODS.get(method)
        if known is None:
            return
        requested = known.request.FromString(request)
        answered = None if answer is None else _plain(known.answer.FromString(answer), known.answered)
        partial = _partial(details)
        with self._lock:
            scrub = self._scrubber.scrub
            call = ProviderCall(
                package=package,
                connection=connection,
                method=method,
                urn=scrub(getattr(requested, "urn", "")),
                request=scrub(_plain(requested, known.requested)),
                answer=None if answered is None else scrub(answered),
                partial=None if partial is None else scrub(partial),
                error=None if error is None else scrub(error),
                seconds=round(seconds, 3),
            )
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(call), sort_keys=True) + "\n")


def read(directory: Path) -> list[tuple[str, list[ProviderCall]]]:
    """Return the recorded calls of each command, by the name of its file, in the order of their ends.

    Raises:
        ProviderCallError: it has no recording, or a file is malformed.
    """
    files = sorted(directory.glob("*.jsonl"))
    if not files:
        raise ProviderCallError(
            f"{directory} has no recording, which `ebbtide up --record {directory}` writes."
        )
    return [(file.name, list(_calls(file))) for file in files]


def _calls(file: Path) -> Iterator[ProviderCall]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            yield ProviderCall(**json.loads(line))
        except (TypeError, ValueError):
            raise ProviderCallError(
                f"{file}, line {number}: this is not a recorded call. Record it again, or delete the file."
            ) from None
