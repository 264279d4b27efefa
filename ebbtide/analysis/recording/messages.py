"""Messages of a run, recorded instead of stdout."""

from collections.abc import Iterable
from typing import Final

from pulumi.runtime.mocks import MockEngine
from pulumi.runtime.proto import engine_pb2

from ebbtide.analysis.recording.recording import Message, Severity
from ebbtide.analysis.recording.values import SECRET_TEXT, Plain

_MIN_SECRET_LENGTH: Final = 6
"""Shorter secrets are not masked: masking every `a` or `true` would garble the text and hide nothing."""


class MessageLog:
    """The messages of a run, with the configuration's secrets masked, as the engine does."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted(
            {text for text in secrets if len(text) >= _MIN_SECRET_LENGTH}, key=len, reverse=True
        )
        self.messages: list[Message] = []

    def clean(self, text: str) -> str:
        """Mask the configuration's secrets in a text."""
        for secret in self._secrets:
            text = text.replace(secret, SECRET_TEXT)
        return text

    def cleaned(self, value: Plain) -> Plain:
        """Mask the configuration's secrets in a value that reaches the monitor unwrapped."""
        if not self._secrets:
            return value
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, dict):
            return {key: self.cleaned(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.cleaned(item) for item in value]
        return value

    def add(self, severity: Severity, text: str, urn: str = "") -> None:
        """Record a message."""
        self.messages.append(Message(severity=severity, text=self.clean(text), urn=urn or None))


_SEVERITIES: Final[dict[int, Severity]] = {
    engine_pb2.INFO: "info",
    engine_pb2.WARNING: "warning",
    engine_pb2.ERROR: "error",
}


class RecordingEngine(MockEngine):
    """Record `pulumi.log` messages. Debug messages, some six for each resource, are dropped."""

    def __init__(self, log: MessageLog) -> None:
        super().__init__(None)
        self._log = log

    def Log(self, request: engine_pb2.LogRequest) -> None:  # noqa: N802 - the protocol's name
        """Record a message."""
        severity = _SEVERITIES.get(request.severity)
        if severity is not None:
            self._log.add(severity, request.message, request.urn)

    def RequirePulumiVersion(self, request: engine_pb2.RequirePulumiVersionRequest) -> None:  # noqa: N802
        """Accept every version: no engine runs."""
