"""Read-only Kubernetes objects."""

from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]
