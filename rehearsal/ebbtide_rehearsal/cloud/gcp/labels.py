"""Billing labels, which have the same syntax in all of Google Cloud.

Source: Resource Manager docs, creating-managing-labels (2026).
"""

import re
from typing import Final

_LABEL_KEY: Final = re.compile(r"^[a-z][a-z0-9_-]{0,62}$")
_LABEL_VALUE: Final = re.compile(r"^[a-z0-9_-]{0,63}$")
_MOST_LABELS: Final = 64


def bad_labels(labels: dict[str, str]) -> str | None:
    """Return the reason why a resource's labels are invalid; None if they are valid."""
    if len(labels) > _MOST_LABELS:
        return f"Resource has {len(labels)} labels, and the limit is {_MOST_LABELS}."
    for key, value in labels.items():
        if not _LABEL_KEY.match(key):
            return f"Invalid label key '{key}': it must match regex '{_LABEL_KEY.pattern}'."
        if not _LABEL_VALUE.match(value):
            return f"Invalid label value '{value}' of '{key}': it must match regex '{_LABEL_VALUE.pattern}'."
    return None
