"""Objects that a cloud installs in a new cluster."""

from pathlib import Path
from typing import Any

import yaml

from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.control_plane import code_pods, compute_class, monitors
from ebbtide_rehearsal.control_plane.plan import CloudName
from ebbtide_rehearsal.control_plane.storage_classes import storage_classes

_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install_definitions(api: Api, directory: Path, pattern: str = "*.yaml") -> None:
    """Install the CRDs in the files of a directory."""
    for file in sorted(directory.glob(pattern)):
        for item in yaml.safe_load_all(file.read_text()):
            if item and item["kind"] == "CustomResourceDefinition":
                api.apply(f"{_KINDS}/{item['metadata']['name']}", item)


def install(api: Api, cloud: CloudName, provisioning_requests: Path) -> None:
    """Install storage classes, the CRDs of ProvisioningRequest and of managed Prometheus, on GKE the
    ComputeClass CRD and tolerations, and the policy for pods with code of users.

    Args:
        api: an administrator's client.
        cloud: the cloud.
        provisioning_requests: the directory of the ProvisioningRequest CRD. GKE installs it in every cluster
            (GKE docs, provisioningrequest, 2026-04), AKS with its cluster autoscaler (AKS docs,
            configure-kueue-with-cluster-autoscaler, 2026).
    """
    for item in storage_classes(cloud):
        api.apply(f"{_CLASSES}/{item['metadata']['name']}", item)
    for item in monitors.definitions(cloud):
        api.apply(f"{_KINDS}/{item['metadata']['name']}", item)
    if cloud == "gke":
        api.apply(f"{_KINDS}/{compute_class.NAME}", compute_class.DEFINITION)
        install_policy(api, compute_class.TOLERATIONS, compute_class.BINDING)
    for policy, binding in code_pods.POLICIES:
        install_policy(api, policy, binding)
    install_definitions(api, provisioning_requests)


def install_policy(api: Api, policy: dict[str, Any], binding: dict[str, Any]) -> None:
    """Create a mutating policy and its binding."""
    for plural, item in (
        ("mutatingadmissionpolicies", policy),
        ("mutatingadmissionpolicybindings", binding),
    ):
        api.apply(f"{_ADMISSION}/{plural}/{item['metadata']['name']}", item)
