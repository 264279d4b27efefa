"""The images that an object names, for tests that each has a fixed version."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from components.addons.patches import containers, data_of, kind_of

_IMAGE_LINE = re.compile(r"^\s*(?:-\s+)?image:\s*['\"]?([^\s'\"]+)", re.MULTILINE)
_VERSIONED = re.compile(r"@sha256:[0-9a-f]{64}$|:v?\d[^:/]*$")


def images(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield every image that an object's pods use, or that its settings name as one."""
    for container in containers(manifest):
        yield str(container["image"])
        for variable in container.get("env", ()):
            if str(variable["name"]).endswith("_IMAGE") and variable.get("value"):
                yield str(variable["value"])
        arguments = [str(argument) for argument in container.get("args", ())]
        for flag, value in pairwise(arguments):
            if flag.endswith("-image"):
                yield value
    if kind_of(manifest) == "ConfigMap":
        for key, text in data_of(manifest).items():
            if key.lower().endswith("image"):
                yield str(text)
            yield from _IMAGE_LINE.findall(str(text))


def floating(manifest: Mapping[str, Any]) -> list[str]:
    """Return an object's images without a fixed version: `:latest`, a branch, or no tag."""
    return [image for image in images(manifest) if not _VERSIONED.search(image)]
