"""Names of the clouds' nodes, node groups and resize requests.

Sources: names in the documentation and issues of GKE and AKS, such as
`gke-cluster-1-default-pool-d2eb6f2e-8w8x` and `aks-nodepool1-12345678-vmss000000` (2026).
"""

import hashlib
import string
from typing import Final

from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.pools import NodePool

_LONGEST: Final = 63
_DIGITS: Final = string.digits + string.ascii_lowercase
_HEX: Final = string.hexdigits[:16]


def _hash(text: str, length: int, digits: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16])
    return _digits(number, digits)[-length:].rjust(length, digits[0])


def _digits(number: int, digits: str) -> str:
    head, last = divmod(number, len(digits))
    return (_digits(head, digits) if head else "") + digits[last]


def group(pool: NodePool, zone: str) -> str:
    """Return the name of the instance group or scale set of a pool's nodes in a zone."""
    match pool.cloud:
        case "gke":
            # The length to which GKE truncates long names is not documented.
            stem = f"gke-{_last(pool.cluster)}-{pool.name}"[: _LONGEST - 14]
            return f"{stem}-{_hash(f'{pool.id}/{zone}', 8, _HEX)}"
        case "aks":
            return f"aks-{pool.name}-{_hash(pool.cluster, 8, string.digits)}-vmss"


def new_name(pool: NodePool, zone: str, number: int, since: float) -> str:
    """Return the name of a new node.

    Args:
        pool: its pool.
        zone: its zone.
        number: number of earlier nodes of the pool, so that no name is used twice.
        since: start time of the fake cloud, so that two clouds use different names.
    """
    stem = group(pool, zone)
    match pool.cloud:
        case "gke":
            return f"{stem}-{_hash(f'{stem}/{number}/{since}', 4, _DIGITS)}"
        case "aks":
            return stem + _digits(number, _DIGITS).rjust(6, "0")


def provider_id(machine: Machine) -> str:
    """Return a machine's provider id, with project or subscription if the cluster's id has them."""
    words = machine.cluster.strip("/").split("/")
    path = dict(zip(words[::2], words[1::2], strict=False))
    match machine.cloud:
        case "gke":
            return f"gce://{path.get('projects', 'rehearsal')}/{machine.zone}/{machine.name}"
        case "aks":
            scale_set, number = machine.name[:-6], int(machine.name[-6:], 36)
            return (
                f"azure:///subscriptions/{path.get('subscriptions', 'rehearsal')}/resourceGroups/"
                f"mc_{path.get('resourceGroups', 'rehearsal')}_{_last(machine.cluster)}/providers/"
                f"Microsoft.Compute/virtualMachineScaleSets/{scale_set}/virtualMachines/{number}"
            )


def _last(identity: str) -> str:
    return identity.rstrip("/").rsplit("/", 1)[-1]


def resize_request(request: str) -> str:
    """Return the name of GKE's resize request for a ProvisioningRequest."""
    return f"gke-{_hash(request, 16, _HEX)}"
