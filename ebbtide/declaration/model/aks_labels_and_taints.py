"""Labels and taints of AKS nodes, AKS's and Ebbtide's: azure-aks-docs, spot-node-pool, use-system-pools,
use-nvidia-gpu and use-amd-gpus (2026)."""

from ebbtide.declaration.catalog import NVIDIA, resource_name, vendor
from ebbtide.declaration.model.capacity import Spot
from ebbtide.declaration.model.pool import Pool, Taint

SPOT = "kubernetes.azure.com/scalesetpriority"
MODE = "kubernetes.azure.com/mode"
AGENT_POOL = "kubernetes.azure.com/agentpool"
ACCELERATOR = "accelerator"

SYSTEM_ONLY = Taint(key="CriticalAddonsOnly", value="true")


def _is_spot(pool: Pool) -> bool:
    return isinstance(pool.capacity, Spot)


def labels(pool: Pool) -> dict[str, str]:
    """Return the labels to declare. AKS adds the spot label itself; if it is not declared, every later
    preview replaces the pool (terraform-provider-azurerm#25615)."""
    return {SPOT: "spot"} if _is_spot(pool) else {}


def cloud_labels(pool: Pool) -> dict[str, str]:
    """Return the labels that AKS adds."""
    labels = {AGENT_POOL: pool.name, MODE: pool.role.value if pool.is_system else "user"}
    if pool.accelerator is not None:
        labels[ACCELERATOR] = vendor(pool.accelerator.type) or NVIDIA
    return labels


def taints(pool: Pool, own: Taint) -> tuple[Taint, ...]:
    """Return the taints to declare: AKS's own spot taint, for the same reason as its label, and Ebbtide's for
    GPU and on-demand nodes, which AKS does not taint."""
    fixed = (Taint(key=SPOT, value="spot"),) if _is_spot(pool) else ()
    if pool.taints is not None:
        return tuple(dict.fromkeys((*pool.taints, *fixed)))
    if pool.is_system:
        return (SYSTEM_ONLY,)
    kind = pool.accelerator.type if pool.accelerator else ""
    gpu = (Taint(key=resource_name(kind), value="present"),) if kind else ()
    return (*(fixed or (own,)), *gpu)


def cloud_taints(pool: Pool, _architecture: str) -> tuple[Taint, ...]:
    """Return the taints that AKS adds; none on Arm nodes (azure-aks-docs use-arm64-vms.md, 2025-02)."""
    return (Taint(key=SPOT, value="spot"),) if _is_spot(pool) else ()


def pool_label(_: Pool) -> str:
    """Return the key of AKS's label with the node pool's name (azure-aks-docs, use-labels, 2026).

    The cluster autoscaler predicts it for a pool at zero nodes, together with its older form `agentpool`
    (kubernetes/autoscaler, cloudprovider/azure/azure_template.go, 2026).
    """
    return AGENT_POOL


def distinguishing(pool: Pool) -> tuple[str, ...]:
    """Return the keys of the labels that distinguish these nodes from others, besides the pool label."""
    keys = [SPOT] if _is_spot(pool) else []
    if pool.accelerator is not None:
        keys.append(ACCELERATOR)
    return tuple(keys)
