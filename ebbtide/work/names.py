"""Validation of names in Kubernetes."""

import re
from typing import Final

LABEL_LENGTH: Final = 63
_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_LENGTH: Final = 253
_VARIABLE: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_DATA_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def is_label(text: str, length: int = LABEL_LENGTH) -> bool:
    """Check a name that must be a DNS label (RFC 1123)."""
    return len(text) <= length and _LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Check a name that must be a DNS subdomain (RFC 1123)."""
    return len(text) <= _SUBDOMAIN_LENGTH and _SUBDOMAIN.fullmatch(text) is not None


def is_variable(text: str) -> bool:
    """Check the name of an environment variable."""
    return _VARIABLE.fullmatch(text) is not None


def is_data_key(text: str) -> bool:
    """Check a key of a Secret's or ConfigMap's data."""
    return _DATA_KEY.fullmatch(text) is not None
