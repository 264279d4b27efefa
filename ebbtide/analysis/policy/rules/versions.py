"""Rules for floating versions of images, charts and kustomizations."""

import re
from collections.abc import Iterator
from typing import Final

from ebbtide.analysis.policy.rules.pod_templates import pod_spec
from ebbtide.analysis.policy.rules.rule import Reviewed, Violation, rule
from ebbtide.analysis.policy.settings import Level
from ebbtide.analysis.reading.inputs import Inputs
from ebbtide.analysis.recording.recording import Resource
from ebbtide.analysis.recording.values import SECRET_TEXT, leaves

_FLOATING: Final = frozenset({"", "latest", "main", "master", "stable", "edge", "nightly"})
_CHARTS: Final = (
    "kubernetes:helm.sh/v3:Release",
    "kubernetes:helm.sh/v3:Chart",
    "kubernetes:helm.sh/v4:Chart",
)
_KUSTOMIZATION: Final = "kubernetes:kustomize/v2:Directory"
_REMOTE: Final = re.compile(r"^(https?://|git@|git::|github\.com/)")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


def _shown(resource: Resource, text: str) -> str:
    """Format a text of a resource's inputs; `[secret]` if it does not occur in plain text."""
    return text if any(leaf == text for _, leaf in leaves(dict(resource.inputs))) else SECRET_TEXT


def _is_floating_image(image: str) -> bool:
    if "@" in image:
        return False
    return image.rpartition("/")[2].partition(":")[2] in _FLOATING


def _images(stack: Reviewed) -> Iterator[Violation]:
    for resource in stack.recording:
        spec = None if resource.read else pod_spec(resource)
        containers = [item for name in _CONTAINERS for item in spec.parts(name)] if spec else []
        for image in dict.fromkeys(container.text("image") for container in containers):
            if image and _is_floating_image(image):
                message = (
                    f"The image {_shown(resource, image)} has no fixed version. Write a tag or a digest."
                )
                yield Violation(stack.subject(resource), message)


def _is_floating_chart(inputs: Inputs) -> bool:
    """Return whether a chart's version floats. Version ranges float; a chart in a directory or an archive is
    fixed.

    The engine has no inputs for a chart whose provider creates its objects.
    """
    chart, version = inputs.text("chart"), inputs.text("version")
    if not chart or chart.startswith((".", "/")) or chart.endswith(".tgz") or "@sha256:" in chart:
        return False
    return version in _FLOATING or any(character in version for character in "^~*<>|") or ".x" in version


def _charts(stack: Reviewed) -> Iterator[Violation]:
    for type_ in _CHARTS:
        for resource in stack.created(type_):
            inputs = Inputs(resource.inputs)
            if _is_floating_chart(inputs):
                chart = _shown(resource, inputs.text("chart"))
                message = f"The chart {chart} has no fixed version. Write its version."
                yield Violation(stack.subject(resource), message)


def _kustomizations(stack: Reviewed) -> Iterator[Violation]:
    for resource in stack.created(_KUSTOMIZATION):
        directory = Inputs(resource.inputs).text("directory")
        if not _REMOTE.match(directory):
            continue
        ref = re.search(r"[?&](?:ref|version)=([^&]+)", directory)
        if (ref[1] if ref else "") in _FLOATING:
            message = f"The kustomization {_shown(resource, directory)} has no fixed version. Add ?ref=TAG."
            yield Violation(stack.subject(resource), message)


@rule(
    "fixed-versions",
    title="Images, charts and kustomizations have a fixed version.",
    level=Level.MANDATORY,
    reason="A floating version changes what runs without a reviewed change.",
    source="kubernetes.io/docs, images: avoid the tag latest (2026)",
)
def _fixed_versions(stack: Reviewed) -> Iterator[Violation]:
    yield from _images(stack)
    yield from _charts(stack)
    yield from _kustomizations(stack)
