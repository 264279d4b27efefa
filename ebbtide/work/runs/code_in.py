"""Storage of a run's code, an option of the command line."""

from enum import StrEnum


class CodeIn(StrEnum):
    """Storage of a run's code."""

    IMAGE = "image"
    """A layer on the image, in the registry of the namespace's team."""
    CONFIG_MAP = "config-map"
    BUCKET = "bucket"
    """An archive in the bucket of the namespace's team, which the pods mount."""
