"""Equality of a recorded value and ours: the cloud chooses some parts, and scrubbing removes others."""

import re
from typing import Any, Final

from ebbtide.recording.assumed_values import ADDRESS, CERTIFICATE_BASE64, WORD, uuid_for

_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_CHOSEN: Final = (
    (re.compile(_UUID), "{uuid}"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b(?!/)"), "{address}"),
    (re.compile(r"(?<![0-9a-z])(?=[0-9a-f]*\d)[0-9a-f]{7,}(?![0-9a-z])"), "{random}"),
)
"""Values that a cloud or its provider chooses: UUIDs, addresses, suffixes of names, numbers of projects."""

_REMOVED: Final = re.compile(r"\\\[[a-z-]+\\\]")
"""A secret that scrubbing has removed, in an escaped text."""

_ASSUMED: Final = re.compile(
    rf"{re.escape(uuid_for(''))[:-12]}[0-9a-f]{{12}}|{re.escape(ADDRESS)}|0{{12}}|{WORD}"
)
_ONLY_THE_CLOUDS: Final = re.compile(
    r"\{(address|certificate|dnsEndpoint|number|suffix|tenantId|nodeResourceGroup|uuid_\w+)\}"
)
"""Facts of the templates of answers that a cloud alone knows."""


def is_absent(value: Any) -> bool:
    """Return whether a value is as good as none: providers omit empty ones, or do not."""
    return value is None or value in ("", [], {})


def is_same(real: Any, ours: Any) -> bool:
    """Return whether a recorded value and ours are equal, but for what the cloud chooses."""
    if is_absent(real) and is_absent(ours):
        return True
    if isinstance(real, str) and not is_absent(ours):
        chosen = _chosen(str(ours))
        pattern = _REMOVED.sub(".+", re.escape(_chosen(real)))
        return re.fullmatch(pattern, chosen, re.DOTALL) is not None
    return type(real) is type(ours) and real == ours


def fits_assumption(real: Any, assumed: Any) -> bool:
    """Return whether a recorded value fits the value that a preview assumes."""
    if not isinstance(real, str) or not isinstance(assumed, str):
        return is_same(real, assumed)
    if assumed == CERTIFICATE_BASE64 or is_same(real, assumed):
        return True
    pieces = _ASSUMED.split(assumed)
    return re.fullmatch(".+".join(map(re.escape, pieces)), real) is not None


def is_only_the_clouds(template: Any) -> bool:
    """Return whether a template states nothing about a value but that there is one."""
    return isinstance(template, str) and _ONLY_THE_CLOUDS.fullmatch(template) is not None


def _chosen(text: str) -> str:
    for pattern, word in _CHOSEN:
        text = pattern.sub(word, text)
    return text
