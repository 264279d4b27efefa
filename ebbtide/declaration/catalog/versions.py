"""Every version that Ebbtide pins or requires of a cloud, with its date.

Python dependencies are pinned separately in `requirements.txt`.
"""

from dataclasses import dataclass
from datetime import date

from ebbtide.declaration.catalog.tables import rows
from ebbtide.values.cloud_kind import CloudKind


@dataclass(frozen=True, slots=True)
class Pin:
    """A version, the date it was released or read, and its source.

    Attributes:
        version: without a `v`, unless its users expect one.
        commit: the commit of a release whose kustomizations are fetched with git: a tag can be moved.
        digest: the digest of a chart that is fetched from a registry, if its publisher announces it.
        package: where newer versions are published, as `DATASOURCE:NAME` in the words of Renovate, which
            reads it from here; empty if the version is a limit, or follows from another pin.
    """

    version: str
    as_of: str
    source: str
    package: str = ""
    commit: str = ""
    digest: str = ""


PINS = {
    "gke-queued-provisioning": Pin("1.32.2-gke.1652000", "2026-04-08", "GKE docs, provisioningrequest"),
    "gke-tpu-flex-start": Pin("1.33.0-gke.1712000", "2026-06-09", "GKE docs, dws-flex-start-training"),
    "gke-shutdown-grace": Pin("1.35.0-gke.1171000", "2026-08", "GKE docs, spot-vms; pulumi-gcp 10.2.0"),
    "gke-gpudirect-tcpxo": Pin(
        "1.28.9-gke.1250000", "2026", "GKE docs, gpus: NVIDIA H100 Mega; gpu-bandwidth-gpudirect-tcpx"
    ),
    "gke-gpudirect-rdma": Pin(
        "1.31.4-gke.1183000", "2026", "AI Hypercomputer docs: A3 Ultra, GPUDirect RDMA"
    ),
    "gke-gpudirect-rdma-a4": Pin("1.32.2-gke.1475000", "2026", "AI Hypercomputer docs: A4, GPUDirect RDMA"),
    "nccl-gib": Pin(
        "v1.1.1",
        "2026-06",
        "GoogleCloudPlatform/container-engine-accelerators@992db812, gpudirect-rdma",
        package="docker:us-docker.pkg.dev/gce-ai-infra/gpudirect-gib/nccl-plugin-gib",
    ),
    "nccl-tcpxo": Pin(
        "v1.0.15",
        "2026-01-09",
        "GoogleCloudPlatform/container-engine-accelerators@992db812, gpudirect-tcpxo/README.md",
        package="docker:us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/nccl-plugin-gpudirecttcpx-dev",
    ),
    "tcpxo-daemon": Pin(
        "v1.0.21",
        "2026-01-09",
        "GoogleCloudPlatform/container-engine-accelerators@992db812, gpudirect-tcpxo/README.md",
    ),
    "nri-device-injector": Pin(
        "sha256:6e79483d52abdc28454bf186320b10a56b0f117a10e8d65d5c74dbb821a76970",
        "2026-06",
        "GoogleCloudPlatform/container-engine-accelerators@992db812, nri_device_injector",
    ),
    "gke-pause": Pin(
        "3.8@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830",
        "2026-06",
        "GoogleCloudPlatform/container-engine-accelerators@992db812, nvidia-driver-installer",
    ),
    "image-python": Pin(
        "docker.io/library/python:3.13-slim"
        "@sha256:9662417aace5ae7b8e2609cce472b72a8958e134ba372808abe9cc1a0c0125e6",
        "2026-08-05",
        "docker-library/repo-info@2986dca3, repos/python/remote/3.13-slim.md",
        package="docker:docker.io/library/python",
    ),
    "image-pytorch": Pin(
        "docker.io/pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"
        "@sha256:b85566342b86d13a67712e9315d40cdc2dad7f8d86df1aff3831f80835edbcca",
        "2026-08-19",
        "allenai/rslearn@15abe58a, Dockerfile",
        package="docker:docker.io/pytorch/pytorch",
    ),
    "gpu-operator": Pin(
        "v26.7.0", "2026-08-21", "helm.ngc.nvidia.com/nvidia/gpu-operator", package="helm:gpu-operator"
    ),
    "nvidia-device-plugin": Pin(
        "v0.18.0", "2026", "azure-aks-docs, use-nvidia-gpu", package="docker:nvcr.io/nvidia/k8s-device-plugin"
    ),
    "dcgm-exporter": Pin(
        "4.5.3-4.8.2-distroless",
        "2026",
        "nvcr.io/nvidia/k8s/dcgm-exporter; the chart dcgm-exporter 4.8.2",
        package="docker:nvcr.io/nvidia/k8s/dcgm-exporter",
    ),
    "kueue": Pin(
        "0.19.2",
        "2026-08-20",
        "registry.k8s.io/kueue/charts/kueue; kubernetes/k8s.io#9856",
        package="go:sigs.k8s.io/kueue",
        digest="sha256:ab436c33ef6c6b9b9e95b633e618bca0e0e436d6581d3b27bd12fc8a8026ab34",
    ),
    "kueue-managed": Pin(
        "0.19.6-aks.0.4.4",
        "2026-11",
        "azure-aks-docs, kueue-overview: AKS' managed Kueue extension (preview)",
    ),
    "kueue-managed-kubernetes": Pin(
        "1.34", "2026-11", "azure-aks-docs, kueue-overview: the least Kubernetes"
    ),
    "pipelines": Pin(
        "2.17.0",
        "2026-07-09",
        "kubeflow/pipelines, tag 2.17.0",
        package="github-tags:kubeflow/pipelines",
        commit="4a3592cb2dd0a91a4652ab93893ec8beda1f3158",
    ),
    "pipelines-module": Pin(
        "0.0.0-20260709152847-4a3592cb2dd0", "2026-07-09", "github.com/kubeflow/pipelines, its tag 2.17.0"
    ),
    "trainer": Pin(
        "2.3.0",
        "2026-08-06",
        "ghcr.io/kubeflow/charts/kubeflow-trainer; kubeflow/trainer, tag v2.3.0",
        package="go:github.com/kubeflow/trainer/v2",
        commit="658725bdae5c7e3a0854d93ac6ff492e109a22ab",
    ),
    "trainer-kubernetes": Pin("1.31", "2026-08-06", "kubeflow/trainer 2.3.0: the least Kubernetes"),
    "jobset": Pin(
        "0.12.0",
        "2026-08-06",
        "kubeflow-trainer 2.3.0, Chart.yaml; registry.k8s.io/jobset",
        package="go:sigs.k8s.io/jobset",
    ),
    "katib": Pin(
        "0.19.0",
        "2025-10-30",
        "kubeflow/katib, tag v0.19.0",
        package="go:github.com/kubeflow/katib",
        commit="578e60f1ce83dbb5e7151026a3bdc4de233947fc",
    ),
    "pulumi": Pin(
        "3.259.0",
        "2026-08-20",
        "github.com/pulumi/pulumi/pkg/v3; PyPI pulumi 3.272.0 works with it",
        package="go:github.com/pulumi/pulumi/pkg/v3",
    ),
    "pulumi-language-python": Pin(
        "3.79.0",
        "2023-08-25",
        "github.com/pulumi/pulumi/sdk/v3: the last tag whose module has the language host in it",
    ),
    "pulumi-language-nodejs": Pin(
        "3.68.0",
        "2023-05-18",
        "github.com/pulumi/pulumi/sdk/v3: the last tag whose module has this host in it",
    ),
    "pulumi-yaml": Pin(
        "1.32.0", "2026-04-21", "github.com/pulumi/pulumi-yaml", package="go:github.com/pulumi/pulumi-yaml"
    ),
    "pulumi-kubernetes": Pin(
        "4.0.0-20260115033456-f47bc2d6f199",
        "2026-01-15",
        "github.com/pulumi/pulumi-kubernetes/provider/v4 at f47bc2d6, of release 4.25",
    ),
    "etcd": Pin("3.6.14", "2026-07-23", "go.etcd.io/etcd/server/v3", package="go:go.etcd.io/etcd/server/v3"),
    "kubernetes": Pin("1.36.2", "2026-06-11", "k8s.io/kubernetes", package="go:k8s.io/kubernetes"),
    "kubernetes-staging": Pin("0.36.2", "2026-06-11", "k8s.io/api and its like, of Kubernetes 1.36.2"),
    "kwok": Pin("0.8.0", "2026-06-23", "sigs.k8s.io/kwok", package="go:sigs.k8s.io/kwok"),
    "helm": Pin(
        "3.20.2",
        "2026-07-01",
        "helm.sh/helm/v3; pulumi/pulumi-kubernetes@94977969, provider/go.mod has it",
        package="go:helm.sh/helm/v3",
    ),
    "distribution": Pin(
        "3.1.2",
        "2026-09-24",
        "github.com/distribution/distribution/v3",
        package="go:github.com/distribution/distribution/v3",
    ),
    "kustomize": Pin(
        "5.8.1",
        "2026-02-09",
        "sigs.k8s.io/kustomize/kustomize/v5; Kubernetes 1.36.2 has it",
        package="go:sigs.k8s.io/kustomize/kustomize/v5",
    ),
    "argo-workflows": Pin(
        "4.0.5",
        "2026-07-09",
        "kubeflow/pipelines, tag 2.17.0, manifests/kustomize/third-party/argo and go.sum",
        package="go:github.com/argoproj/argo-workflows/v4",
    ),
    "provisioning-request": Pin(
        "0.0.0-20240830133931-adfbe7e45277",
        "2024-08-30",
        "k8s.io/autoscaler/cluster-autoscaler/apis, as kueue 0.19.2 has it in go.mod",
    ),
    "cluster-autoscaler": Pin(
        "0.0.0-20250613073258-1959f5f61f6c",
        "2025-06-13",
        "kubernetes/autoscaler@1959f5f6, cluster-autoscaler: between 1.33.0 and 1.34.0",
    ),
    "jupyterlab": Pin("4.6.6", "2026-11-06", "pypi.org/project/jupyterlab", package="pypi:jupyterlab"),
    "kubelogin": Pin(
        "0.2.22",
        "2026-10-24",
        "github.com/Azure/kubelogin, as a Go module",
        package="go:github.com/Azure/kubelogin",
    ),
    "leaderworkerset": Pin(
        "0.8.0",
        "2026-01-26",
        "kubeflow-trainer 2.3.0, Chart.yaml; sigs.k8s.io/lws",
        package="go:sigs.k8s.io/lws",
    ),
}


def kubernetes_versions(cloud: CloudKind, plan: str) -> dict[str, date]:
    """Return the minor versions of Kubernetes that new clusters can have, each with its last day, the oldest
    first. The dates of GKE's schedule are estimates, and omitted (GKE docs, release-schedule).

    Args:
        plan: release channel of GKE, or pricing tier of AKS.
    """
    return {
        version: date.fromisoformat(row["until"]) if row["until"] else date.max
        for row in rows("kubernetes_versions")
        if row["cloud"] == cloud.value and plan in row["plans"].split()
        for version in row["versions"].split()
    }
