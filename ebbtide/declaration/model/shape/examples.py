"""Example values of fields, and taints in the declaration's form, for messages."""

import re
from collections.abc import Mapping
from typing import cast

from ebbtide.declaration.model.shape.error_locations import Location, aliases_of, item_of, models_in

_EXAMPLES = {
    "Accelerator.type": "nvidia-tesla-t4",
    "AksAccess.admins": "[11111111-2222-3333-4444-555555555555]",
    "AksAccess.networks": "[203.0.113.0/24]",
    "Aks.location": "eastus",
    "Aks.subscription": "11111111-2222-3333-4444-555555555555",
    "Cluster.addons": "{pipelines: {}}",
    "Cluster.cloud": "{kind: gke, project: acme-ml, location: us-central1-a}",
    "Cluster.lifetime": "{hours: 8}",
    "Cluster.name": "train-dev",
    "Cluster.owner": "vision-team",
    "Cluster.pools": "[{name: system, role: system, machine: e2-standard-2, nodes: {max: 3}}]",
    "Cluster.queues": "[{name: t4, pools: [t4-spot]}]",
    "Cluster.teams": "[{name: vision, members: [vision@acme.example]}]",
    "Existing.name": "shared-cluster",
    "Gke.existing": "{name: shared-cluster}",
    "Aks.existing": "{name: shared-cluster}",
    "GkeAccess.networks": "[203.0.113.0/24]",
    "Gke.location": "us-central1-a",
    "Gke.project": "acme-ml",
    "Gke.maintenance": '{window: {days: [saturday], start: "02:00", duration: 12h}}',
    "Aks.maintenance": '{window: {days: [saturday], start: "02:00", duration: 4h}}',
    "Lifetime.hours": "8",
    "LocalQueue": "{namespace: default}",
    "LocalQueue.name": "dws-local-queue",
    "LocalQueue.namespace": "default",
    "MachineShape.type": "n2-standard-8",
    "Maintenance.window": '{days: [saturday], start: "02:00", duration: 12h}',
    "MaintenanceExclusion": '{name: launch, start: "2026-12-20", end: "2027-01-04"}',
    "MaintenanceExclusion.name": "launch",
    "MaintenanceExclusion.start": '"2026-12-20"',
    "MaintenanceExclusion.end": '"2027-01-04"',
    "MaintenanceWindow.duration": "12h",
    "MaintenanceWindow.start": '"02:00"',
    "Namespace.name": "vision",
    "PolicyException": "{rule: spot-system, resource: system, reason: a cluster for hours}",
    "PolicyException.reason": "a cluster for hours",
    "PolicyException.resource": "system",
    "PolicyException.rule": "spot-system",
    "PolicyException.until": '"2027-01-31"',
    "Pool": "{name: cpu-spot, machine: n2-standard-8, capacity: spot, nodes: {max: 4}}",
    "Pool.accelerator": "{type: nvidia-tesla-t4, count: 1}",
    "Pool.capacity": "spot",
    "Pool.disk": "{sizeGib: 100}",
    "Pool.labels": "{team: vision}",
    "Pool.machine": "n2-standard-8",
    "Pool.name": "cpu-spot",
    "Pool.nodes": "{max: 4}",
    "Pool.taints": "[{key: preemptible, value: 'true'}]",
    "Pool.upgrade": "{maxSurge: 1}",
    "Queue": "{name: t4, pools: [t4-spot]}",
    "Queue.localQueues": "[{namespace: default}]",
    "Queue.name": "t4",
    "Queue.pools": "[t4-spot]",
    "QueueUse": "t4",
    "QueueUse.queue": "t4",
    "Reservation.name": "a100-reservation",
    "Taint": "{key: preemptible, value: 'true'}",
    "Taint.key": "preemptible",
    "Team": "{name: vision, members: [vision@acme.example]}",
    "Team.bucket": "{}",
    "Team.guarantee": "{t4-spot: 1}",
    "Team.name": "vision",
    "Team.namespace": "{name: vision}",
    "Team.queues": "[t4]",
    "Team.volume": "{}",
}
"""Example values of fields and list items."""

_TAINT = re.compile(r"(?P<key>[^=:\s]+)(=(?P<value>[^=:\s]*))?(:(?P<effect>\w+))?")
"""A taint in kubectl's form: `key=value:NoSchedule`."""


def example_of(location: Location) -> str:
    """Return an example value of a field or list item; empty for none."""
    if location.owner is None or location.field is None:
        return next((_EXAMPLES.get(model.__name__, "") for model in models_in(location.annotation)), "")
    alias = next(alias for alias, field in aliases_of(location.owner).items() if field is location.field)
    # Every field of an add-on has a default.
    default = "{}" if any(_is(model, "AddOn") for model in models_in(location.annotation)) else ""
    return _EXAMPLES.get(f"{location.owner.__name__}.{alias}", default)


def taint_of(location: Location) -> str:
    """Convert taints from kubectl's form or a mapping of keys to values to the declaration's form; empty for
    anything else."""
    value = location.value
    if _is_taint(location.annotation) and isinstance(value, str):
        match = _TAINT.fullmatch(value)
        return _taint_of(**match.groupdict(default="")) if match else ""
    if _is_taint(item_of(location.annotation)) and isinstance(value, Mapping):
        values = cast("Mapping[str, object]", value)
        written = [_taint_of(str(key), text) for key, text in values.items() if isinstance(text, str)]
        return f"[{', '.join(written)}]" if len(written) == len(values) and "key" not in values else ""
    return ""


def _is_taint(annotation: object) -> bool:
    return [model.__name__ for model in models_in(annotation)] == ["Taint"]


def _is(model: type, name: str) -> bool:
    """Return whether a class or a base of it has this name: the models import this module."""
    return any(base.__name__ == name for base in model.__mro__)


def _taint_of(key: str, value: str, effect: str = "") -> str:
    fields = {"key": key, "value": value, "effect": effect}
    return f"{{{', '.join(f'{name}: {text}' for name, text in fields.items() if text)}}}"
