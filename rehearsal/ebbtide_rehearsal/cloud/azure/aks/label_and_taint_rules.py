"""AKS rules for labels and taints of node pools."""

import re
from typing import Final

from ebbtide_rehearsal.cloud.azure.aks.labels_and_taints import SPOT_LABEL, SPOT_TAINT, taint
from ebbtide_rehearsal.cloud.azure.aks.pool_request import PoolRequest, PoolRule
from ebbtide_rehearsal.cloud.azure.errors import fixed, invalid, refused
from ebbtide_rehearsal.cloud.azure.values import inner, items

_LABELS: Final = "azure-aks-docs, use-labels (2026)"
_KUBERNETES: Final = "kubernetes.io, concepts/overview/working-with-objects/labels (2026)"

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_PREFIX: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ALLOWED: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return _NAME.fullmatch(name) is not None and (not slash or _PREFIX.fullmatch(prefix) is not None)


def _is_value(value: str) -> bool:
    return value == "" or _NAME.fullmatch(value) is not None


def _labels_are_labels(pool: PoolRequest) -> str | None:
    for key, value in inner(pool.given, "nodeLabels").items():
        if not _is_key(key):
            return refused("BadRequest", f"Invalid node label key {key}.", target=f"{key}={value}")
        if not _is_value(str(value)):
            return refused(
                "BadRequest", f"Invalid node label value {value} of key {key}.", target=f"{key}={value}"
            )
    return None


def _prefix_is_not_azures(pool: PoolRequest) -> str | None:
    """Reject labels with Azure's prefixes, except the spot label that AKS adds itself."""
    for key, value in inner(pool.given, "nodeLabels").items():
        is_own = pool.is_spot and (key, value) == SPOT_LABEL
        if key.rpartition("/")[0].endswith("kubernetes.azure.com") and not is_own:
            return refused(
                "BadRequest",
                f"Invalid node label key {key}. The 'kubernetes.azure.com' prefix is preserved by aks "
                "system labels",
                target=f"{key}={value}",
            )
    return None


def _prefix_is_not_kubernetes(pool: PoolRequest) -> str | None:
    for key, value in inner(pool.given, "nodeLabels").items():
        prefix = key.rpartition("/")[0]
        is_reserved = prefix.endswith(("kubernetes.io", "k8s.io"))
        if is_reserved and not prefix.endswith(_ALLOWED):
            return refused(
                "BadRequest",
                "For Kubernetes version greater than or equal to 1.16, node label keys in the "
                "'kubernetes.io' or "
                f"'k8s.io' namespace must begin with an allowed prefix ({', '.join(_ALLOWED)}). For more "
                "information, please check https://aka.ms/aks-node-labels-116.",
                target=f"{key}={value}",
            )
    return None


def _taints_are_taints(pool: PoolRequest) -> str | None:
    for text in items(pool.given, "nodeTaints"):
        parsed = taint(str(text))
        if not _is_key(parsed.key) or not _is_value(parsed.value) or parsed.effect not in _EFFECTS:
            return invalid("agentPoolProfile.nodeTaints", f"'{text}' is not of the form key=value:effect")
    return None


def _system_pool_takes_its_pods(pool: PoolRequest) -> str | None:
    taints = [taint(str(text)) for text in items(pool.given, "nodeTaints")]
    if not pool.is_system or all(
        parsed.key == "CriticalAddonsOnly" or parsed.effect == "PreferNoSchedule" for parsed in taints
    ):
        return None
    return refused(
        "SystemPoolHasRestrictedTaint",
        "Operation failed due to insufficient nodes for system pod scheduling. Placing custom taints on "
        "system "
        "pool is not supported(except 'CriticalAddonsOnly' taint or taint effect is 'PreferNoSchedule'). "
        "Please "
        "refer to https://aka.ms/aks/system-taints for detail",
    )


def _spot_taint_stays(pool: PoolRequest) -> str | None:
    """Reject a change that omits the spot taint added by AKS."""
    if pool.old is None or not pool.is_spot or SPOT_TAINT in items(pool.given, "nodeTaints"):
        return None
    return fixed("properties.nodeTaints")


RULES: Final = (
    PoolRule("labels of Kubernetes' form", _KUBERNETES, _labels_are_labels),
    PoolRule("no label of Azure's", f"{_LABELS}; ams0/aks-nvme-ssd-provisioner#5", _prefix_is_not_azures),
    PoolRule(
        "no label of Kubernetes'",
        f"{_LABELS}; hashicorp/terraform-provider-azurerm#18567; Azure/AKS#2866",
        _prefix_is_not_kubernetes,
    ),
    PoolRule("taints of Kubernetes' form", "azure-aks-docs, use-node-taints (2026)", _taints_are_taints),
    PoolRule("a system pool takes system pods", "Azure/AKS#2578", _system_pool_takes_its_pods),
    PoolRule(
        "the spot taint stays",
        "azure-aks-docs, use-node-taints (2026); pulumi/pulumi-azure-native#959",
        _spot_taint_stays,
    ),
)
