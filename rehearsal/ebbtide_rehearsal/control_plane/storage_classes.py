"""Default storage classes of a new cluster, by cloud."""

from typing import Any, assert_never

from ebbtide_rehearsal.control_plane.plan import CloudName

_DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
_GKE_DISKS, _AKS_DISKS, _AKS_FILES = "pd.csi.storage.gke.io", "disk.csi.azure.com", "file.csi.azure.com"


def _class(
    name: str,
    driver: str,
    parameters: dict[str, str],
    *,
    binding: str = "WaitForFirstConsumer",
    default: bool = False,
) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": _DEFAULT if default else {}},
        "provisioner": driver,
        "parameters": parameters,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": binding,
        "allowVolumeExpansion": True,
    }


def storage_classes(cloud: CloudName) -> tuple[dict[str, Any], ...]:
    """Return the storage classes of a cloud's new cluster, including the default one.

    Sources: GKE docs, persistent-volumes/gce-pd-csi-driver (2026); AKS docs, concepts-storage and
    azure-disk-csi, azure-files-csi (2026).
    """
    match cloud:
        case "gke":
            return (
                _class("standard", _GKE_DISKS, {"type": "pd-standard"}, binding="Immediate"),
                _class("standard-rwo", _GKE_DISKS, {"type": "pd-balanced"}, default=True),
                _class("premium-rwo", _GKE_DISKS, {"type": "pd-ssd"}),
            )
        case "aks":
            standard, premium = {"skuname": "StandardSSD_LRS"}, {"skuname": "Premium_LRS"}
            return (
                _class("default", _AKS_DISKS, standard, default=True),
                _class("managed", _AKS_DISKS, standard),
                _class("managed-csi", _AKS_DISKS, standard),
                _class("managed-premium", _AKS_DISKS, premium),
                _class("managed-csi-premium", _AKS_DISKS, premium),
                _class("azurefile", _AKS_FILES, {"skuName": "Standard_LRS"}, binding="Immediate"),
                _class("azurefile-csi", _AKS_FILES, {"skuName": "Standard_LRS"}, binding="Immediate"),
                _class("azurefile-premium", _AKS_FILES, {"skuName": "Premium_LRS"}, binding="Immediate"),
                _class("azurefile-csi-premium", _AKS_FILES, {"skuName": "Premium_LRS"}, binding="Immediate"),
            )
        case _:
            assert_never(cloud)
