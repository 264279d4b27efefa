"""Outputs from the templates that previews also use: `ebbtide.analysis.recording.assumed_azure`."""

from typing import Any
from uuid import uuid4

from ebbtide.analysis.providers.property_path import merged
from ebbtide.analysis.recording.assumed_azure import NODE_RESOURCE_GROUP, RESOURCES
from ebbtide.analysis.recording.assumption_tables import Text, rendered_properties
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import TENANT
from ebbtide_rehearsal.cloud.azure.resource_kind import Request

_LONGEST_GROUP = 80


class _Facts(dict[str, str]):
    """Facts that a template references, from a request or chosen by Azure."""

    def __init__(self, request: Request) -> None:
        inputs = {key: str(value) for key, value in request.inputs.items() if isinstance(value, str)}
        super().__init__(
            inputs,
            name=ids.last(request.id),
            resourceGroupName=ids.last(ids.group_of(request.id)),
            subscriptionId=request.cloud.subscription,
            tenantId=TENANT,
            location=str(request.inputs.get("location", "")).replace(" ", "").lower(),
            dnsPrefix=str(request.inputs.get("dnsPrefix") or request.inputs.get("fqdnSubdomain")),
        )
        group = NODE_RESOURCE_GROUP.format_map(self)[:_LONGEST_GROUP]
        self.setdefault("nodeResourceGroup", request.preserved("nodeResourceGroup", lambda: group))

    def __getitem__(self, key: str) -> Text:
        return Text(super().__getitem__(key))

    def __missing__(self, key: str) -> str:
        chosen = str(uuid4()) if key.startswith("uuid_") else uuid4().hex[:8]
        return self.setdefault(key, chosen)


def outputs_of(request: Request) -> dict[str, Any]:
    """Return the outputs of a requested resource, existing or new."""
    rendered = rendered_properties(RESOURCES[request.type].outputs, _Facts(request))
    if request.old is None:
        return rendered
    existing = {name: request.old.state[name] for name in rendered if name in request.old.state}
    return merged(rendered, existing)
