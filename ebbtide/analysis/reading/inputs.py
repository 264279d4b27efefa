"""Access to inputs that may be absent, secret or unknown."""

from collections.abc import Mapping

from ebbtide.analysis.recording.values import Plain, at, revealed


class Inputs:
    """The inputs of a resource, or of a part of it, by property path."""

    def __init__(self, values: Mapping[str, Plain]) -> None:
        self._values = dict(values)

    def _at(self, path: str) -> Plain:
        return revealed(at(self._values, path))

    def text(self, path: str) -> str:
        """Return text; empty if absent or unknown."""
        value = self._at(path)
        return value if isinstance(value, str) else ""

    def number(self, path: str) -> int | None:
        """Return an integer; None if absent."""
        value = self._at(path)
        return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def amount(self, path: str) -> float | None:
        """Return a number; None if absent."""
        value = self._at(path)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def flag(self, path: str) -> bool:
        """Return a boolean; false if absent."""
        return self._at(path) is True

    def is_false(self, path: str) -> bool:
        """Return whether the value is a boolean false; false if absent."""
        return self._at(path) is False

    def has(self, path: str) -> bool:
        """Return whether the path exists."""
        return self._at(path) is not None

    def texts(self, path: str) -> tuple[str, ...]:
        """Return a list of text."""
        value = self._at(path)
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()

    def labels(self, path: str) -> dict[str, str]:
        """Return a map of text to text."""
        value = self._at(path)
        items = value.items() if isinstance(value, dict) else ()
        return {key: item for key, item in items if isinstance(item, str)}

    def parts(self, path: str) -> tuple["Inputs", ...]:
        """Return a list of objects."""
        value = self._at(path)
        items = value if isinstance(value, list) else ()
        return tuple(Inputs(item) for item in items if isinstance(item, dict))
