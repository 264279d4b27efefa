"""Pod specifications in recorded Kubernetes objects."""

from typing import Final

from ebbtide.analysis.reading.inputs import Inputs
from ebbtide.analysis.recording.recording import Resource
from ebbtide.analysis.recording.values import Plain, at

_TEMPLATE: Final = "spec.template.spec"
_PATHS: Final = {
    "Pod": "spec",
    "CronJob": "spec.jobTemplate.spec.template.spec",
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"), _TEMPLATE
    ),
}


def pod_spec(resource: Resource) -> Inputs | None:
    """Return the pod specification of a workload; None for other resources."""
    package, _, rest = resource.type.partition(":")
    path = _PATHS.get(rest.rpartition(":")[2]) if package == "kubernetes" else None
    spec: Plain = at(dict(resource.inputs), path) if path else None
    return Inputs(spec) if isinstance(spec, dict) else None
