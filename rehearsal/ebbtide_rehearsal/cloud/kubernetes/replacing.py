"""Which fields of an object cannot be changed, so that another value needs another object.

A field that is not among them and is immutable all the same is refused by the API server. Source:
pulumi-kubernetes 4.32, provider/pkg/provider/diff.go, with the meaning that its paths have there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ebbtide_rehearsal.cloud.kubernetes.kinds import Kind, kind_of
from ebbtide_rehearsal.cloud.kubernetes.objects import MISSING, Path, at, words

_ANY: Final = "[*]"  # any index of a list

_IDENTITY: Final = ("metadata.name", "metadata.namespace")

_VOLUME_SOURCES: Final = words(
    """
    awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker
    gcePersistentDisk glusterfs hostPath iscsi local nfs photonPersistentDisk portworxVolume quobyte
    rbd scaleIO storageos vsphereVolume
    """
)

_POD: Final = words(
    """
    affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC
    hostNetwork hostPID hostname imagePullSecrets nodeName nodeSelector overhead preemptionPolicy
    priority priorityClassName readinessGates restartPolicy runtimeClassName schedulerName
    securityContext serviceAccount serviceAccountName shareProcessNamespace subdomain
    terminationGracePeriodSeconds volumes
    """
)

_CONTAINER: Final = words(
    """
    args command env image imagePullPolicy lifecycle livenessProbe ports readinessProbe resources
    securityContext stdin stdinOnce terminationMessagePath terminationMessagePolicy tty
    volumeDevices volumeMounts workingDir
    """
)

_RBAC: Final = "rbac.authorization.k8s.io"
_STATEFUL_SET: Final = (
    "podManagementPolicy",
    "revisionHistoryLimit",
    "selector",
    "serviceName",
    "volumeClaimTemplates",
)


def _spec(fields: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"spec.{field}" for field in fields)


_FIXED: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind("apps", "v1", "DaemonSet"): ("spec.selector",),
    Kind("apps", "v1", "Deployment"): ("spec.selector",),
    Kind("apps", "v1", "StatefulSet"): _spec(_STATEFUL_SET),
    Kind("batch", "v1", "Job"): _spec(("completions", "parallelism", "selector", "template")),
    Kind(_RBAC, "v1", "ClusterRoleBinding"): ("roleRef",),
    Kind(_RBAC, "v1", "RoleBinding"): ("roleRef",),
    Kind("storage.k8s.io", "v1", "StorageClass"): ("parameters", "provisioner"),
    Kind("", "v1", "PersistentVolume"): _spec(_VOLUME_SOURCES),
    Kind("", "v1", "PersistentVolumeClaim"): _spec(
        ("accessModes", "selector", "storageClassName", "volumeName")
    ),
    Kind("", "v1", "Pod"): (
        *_spec(_POD),
        *(f"spec.containers.{_ANY}.{field}" for field in _CONTAINER),
        *(f"spec.initContainers.{_ANY}.{field}" for field in _CONTAINER),
    ),
    Kind("", "v1", "ResourceQuota"): ("spec.scopes",),
    Kind("", "v1", "Secret"): ("type",),
    Kind("", "v1", "Service"): ("spec.clusterIP",),
}


def fixed_fields(
    manifest: Mapping[str, Any], *, patch: bool, mutable_config_maps: bool, mutable_secrets: bool
) -> tuple[str, ...]:
    """Paths of what cannot be changed of an object, dots between the keys.

    Args:
        manifest: as it is wanted.
        patch: whether the resource only owns some fields of it.
        mutable_config_maps: the provider's `enableConfigMapMutable`; without it, other data make another
            ConfigMap.
        mutable_secrets: likewise, `enableSecretMutable`.
    """
    if patch:
        return _IDENTITY
    kind = kind_of(manifest)
    immutable = manifest.get("immutable") is True
    if kind == Kind("", "v1", "Secret") and (immutable or not mutable_secrets):
        return (*_IDENTITY, "type", "stringData", "data")
    if kind == Kind("", "v1", "ConfigMap") and (immutable or not mutable_config_maps):
        return (*_IDENTITY, "binaryData", "data")
    return (*_IDENTITY, *_FIXED.get(kind, ()))


def needs_another(path: Path, new: Any, fixed: Sequence[str]) -> bool:
    """Whether a change at a path needs another object: the path is of a field that is fixed, or the new value
    there has one in it.

    Args:
        path: where the value differs.
        new: the new value there; `MISSING` where it is to go.
        fixed: from `fixed_fields`.
    """
    return any(_touches(path, new, field.split(".")) for field in fixed)


def _touches(path: Path, new: Any, field: Sequence[str]) -> bool:
    shared = min(len(path), len(field))
    if not all(_same(step, key) for step, key in zip(path[:shared], field[:shared], strict=True)):
        return False
    rest = field[shared:]
    return not rest or (_ANY not in rest and at(new, *rest) is not MISSING)


def _same(step: str | int, key: str) -> bool:
    return key == _ANY if isinstance(step, int) else step == key
