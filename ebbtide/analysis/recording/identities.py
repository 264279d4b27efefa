"""Identity of resources in two recordings of a stack, as the engine determines it: by URN, or by alias."""

import re
from collections.abc import Iterator
from typing import Final

from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.urns import urn_of

_PART: Final = re.compile(r"(parent|type|name|project|stack)=(.*?)(?= (?:parent|type|name|project|stack)=|$)")
_NO_PARENT: Final = "the stack"


def former_resources(before: Recording, after: Recording) -> dict[str, Resource]:
    """Return the resources of `before` that are also in `after`, by their URN in `after`.

    A child of a resource with an alias is found below its parent's former URN, and by its former name if that
    starts with the parent's (pulumi, `inheritedChildAlias`).
    """
    former: dict[str, Resource] = {}
    for resource in after:
        urns = (urn for urn in _candidates(resource, after, former) if urn in before)
        if (urn := next(urns, None)) is not None:
            former[resource.urn] = before[urn]
    return former


def _candidates(resource: Resource, after: Recording, former: dict[str, Resource]) -> Iterator[str]:
    """Yield the possible former URNs of a resource, its current one first."""
    yield resource.urn
    parent = former.get(resource.parent or "")
    parents = [resource.parent, parent.urn] if parent else [resource.parent]
    for parent_urn in parents:
        yield _urn(resource, after, {"parent": parent_urn or _NO_PARENT})
        for alias in resource.aliases:
            if alias.startswith("urn:"):
                yield alias
            else:
                parts = dict(_PART.findall(alias))
                yield _urn(resource, after, {"parent": parent_urn or _NO_PARENT, **parts})
    if parent and resource.parent:
        name = after[resource.parent].name
        if resource.name.startswith(name):
            renamed = parent.name + resource.name.removeprefix(name)
            yield _urn(resource, after, {"parent": parent.urn, "name": renamed})


def _urn(resource: Resource, after: Recording, parts: dict[str, str]) -> str:
    parent = parts["parent"]
    return urn_of(
        parts.get("stack", after.stack),
        parts.get("project", after.project),
        None if parent == _NO_PARENT else parent,
        parts.get("type", resource.type),
        parts.get("name", resource.name),
    )
