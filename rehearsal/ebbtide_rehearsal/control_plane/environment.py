"""Environment variables of a container."""

from ebbtide.kubernetes_api import Object
from ebbtide.paths import value_at
from ebbtide_rehearsal.control_plane.mounts import NotMountedError


def environment(pod: Object) -> dict[str, str]:
    """Return the variables of the pod's only container: literals and fields of the pod.

    Raises:
        NotMountedError: a variable has another source, or a field that the pod lacks.
    """
    (container,) = pod["spec"]["containers"]
    return {item["name"]: _value(item, pod) for item in container.get("env", [])}


def _value(item: Object, pod: Object) -> str:
    source = item.get("valueFrom")
    if source is None:
        return str(item.get("value", ""))
    value = value_at(pod, source.get("fieldRef", {}).get("fieldPath", ""))
    if not isinstance(value, str):
        raise NotMountedError(f"variable {item['name']}: a rehearsal does not know where it comes from")
    return value
