"""Node pools that GKE refuses, with the issue threads that the cases are from."""

from typing import Any

from rehearsal.tests.unit.gcp_capacity_cases import CAPACITY, total

L4 = {
    "nodeConfig__machineType": "g2-standard-8",
    "nodeConfig__guestAccelerators": [{"type": "nvidia-l4", "count": 1}],
}


def _attached(kind: str, count: int) -> dict[str, Any]:
    return {"nodeConfig__guestAccelerators": [{"type": kind, "count": count}]}


def _shared(**sharing: Any) -> dict[str, Any]:
    return {"nodeConfig__guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 4, **sharing}]}


def _taint(key: str, value: str = "true") -> dict[str, str]:
    return {"key": key, "value": value, "effect": "NO_SCHEDULE"}


# The pool that is changed, what is changed of it, the rule that is broken, and what the API says.
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    *CAPACITY,
    ("cpu", {"cluster": "nobody"}, "a cluster that there is", "Error 404: Not found: projects/acme-ml/"),
    ("cpu", {"name": "Big-Pool"}, "a name", 'Invalid node pool name "Big-Pool"'),
    ("cpu", {"name": "p" * 41}, "a name", "up to 39"),
    # kaiwaehner/hivemq-mqtt-tensorflow-kafka-realtime-iot-machine-learning-training-inference#47
    (
        "cpu",
        {"management__autoUpgrade": False},
        "upgrades in a release channel",
        "cannot be false when release_channel REGULAR is set.",
    ),
    (
        "cpu",
        {"version": "1.99.0-gke.1"},
        "no node newer than the control plane",
        "must not be greater than master version",
    ),
    (
        "cpu",
        {"nodeConfig__machineType": "a3-highgpu-1g", "nodeConfig__spot": False},
        "machines that are not sold on demand",
        "Machine type a3-highgpu-1g is only supported with Spot or Flex start.",
    ),
    ("cpu", total(0, 1001), "nodes in a zone", "Node pools are limited to 1000 nodes per zone."),
    (
        "cpu",
        {"upgradeSettings": {"strategy": "SURGE", "maxSurge": 20, "maxUnavailable": 1}},
        "surge or unavailable",
        "cannot exceed 20",
    ),
    (
        "cpu",
        {
            "nodeConfig__machineType": "ct5lp-hightpu-4t",
            "placementPolicy": {"type": "COMPACT", "tpuTopology": "2x8"},
        },
        "whole TPU slices",
        "TPU topology 2x8 is not supported for machine type ct5lp-hightpu-4t",
    ),
    (
        "cpu",
        {"nodeConfig__machineType": "n2-standard-7"},
        "a machine type that there is",
        'Machine type with name "n2-standard-7" does not exist in zone "us-central1-a"',
    ),
    (
        "cpu",
        {"nodeConfig__ephemeralStorageLocalSsdConfig": {"localSsdCount": 3}},
        "local SSDs of the machine",
        "Number of local SSDs 3 is not supported for machine type n2-standard-8",
    ),
    (
        "cpu",
        {"placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4"}},
        "whole TPU slices",
        "TPU topology 4x4 is not supported for machine type n2-standard-8",
    ),
    (
        "cpu",
        {
            "nodeConfig__machineType": "ct5lp-hightpu-4t",
            "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4"},
        }
        | total(0, 8),
        "whole TPU slices",
        "TPU topology 4x4 of ct5lp-hightpu-4t requires 4 nodes, got 8",
    ),
    (
        "cpu",
        {"nodeConfig__machineType": "c3-standard-8", "nodeConfig__gvnic": {"enabled": False}},
        "a network interface of the machine",
        "[VIRTIO_NET, c3] features are not compatible",
    ),
    (
        "cpu",
        {
            "nodeConfig__secondaryBootDisks": [
                {"diskImage": "global/images/trainer", "mode": "CONTAINER_IMAGE_CACHE"}
            ]
        },
        "preloaded images are streamed",
        "require image streaming to be enabled",
    ),
    (
        "cpu",
        {"nodeConfig__gcfsConfig": {"enabled": True}, "nodeConfig__imageType": "UBUNTU_CONTAINERD"},
        "preloaded images are streamed",
        "only supported with Container-Optimized OS",
    ),
    (
        "t4",
        {"placementPolicy": {"type": "COMPACT"}},
        "compact placement",
        "Placement policy is not applicable to machine type n1-highmem-8",
    ),
    (
        "t4",
        _shared(gpuPartitionSize="1g.5gb"),
        "GPUs that can be shared so",
        "1g.5gb is not supported for accelerator type nvidia-tesla-t4",
    ),
    (
        "t4",
        _shared(gpuSharingConfig={"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": 49}),
        "GPUs that can be shared so",
        "must be 2 to 48, got 49",
    ),
    # GoogleCloudPlatform/kubernetes-engine-samples#1738
    (
        "t4",
        {"nodeConfig__machineType": "n1-standard-8"} | _attached("nvidia-tesla-p100", 1),
        "hardware that the zone has",
        'Accelerator type "nvidia-tesla-p100" does not exist in zone us-central1-a., badRequest',
    ),
    # keras-team/kinetic#305
    (
        "cpu",
        {"nodeConfig__machineType": "ct6e-standard-1t"},
        "hardware that the zone has",
        'Invalid machine type "ct6e-standard-1t" in zone "us-central1-a": GCE_NOT_FOUND, badRequest',
    ),
    # hashicorp/terraform-provider-google#8387
    (
        "t4",
        {"nodeConfig__machineType": None},
        "no GPUs on the default machine",
        "Cannot use default machine type (e2-medium) with GPUs; choose a different machine type., badRequest",
    ),
    # terraform-google-modules/terraform-google-kubernetes-engine#2608
    (
        "t4",
        {"nodeConfig__machineType": "n2-standard-8"},
        "accelerators that the machine carries",
        "[nvidia-tesla-t4, n2-standard-8] features are not compatible for creating instance.",
    ),
    # skypilot-org/skypilot#212
    (
        "t4",
        _attached("nvidia-tesla-a100", 1),
        "accelerators that the machine carries",
        "[nvidia-tesla-a100, n1-highmem-8] features are not compatible for creating instance.",
    ),
    (
        "t4",
        _attached("nvidia-tesla-t4", 3),
        "accelerators that the machine carries",
        "The number of GPU cards (3 nvidia-tesla-t4) is not supported",
    ),
    (
        "cpu",
        L4 | _attached("nvidia-l4", 2),
        "accelerators that the machine carries",
        "g2-standard-8 has 1 nvidia-l4",
    ),
    (
        "t4",
        _attached("tpu-v5-lite-podslice", 1),
        "accelerators that the machine carries",
        "is not a GPU",
    ),
    (
        "cpu",
        L4
        | {
            "nodeConfig__imageType": "UBUNTU_CONTAINERD",
            "nodeConfig__guestAccelerators": [
                {
                    "type": "nvidia-l4",
                    "count": 1,
                    "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"},
                }
            ],
        },
        "the latest driver on COS alone",
        "only supported with Container-Optimized OS",
    ),
    # hashicorp/terraform-provider-google#19890
    (
        "cpu",
        {"nodeConfig__machineType": "c4-standard-8", "nodeConfig__diskType": "pd-balanced"},
        "a boot disk of the machine family",
        "pd-balanced disk type cannot be used by c4-standard-8 machine type., badRequest",
    ),
    (
        "cpu",
        {"nodeConfig__diskSizeGb": 70_000},
        "a boot disk of the machine family",
        "exceeds the maximum of 65536 GB",
    ),
    ("cpu", {"nodeConfig__imageType": "DEBIAN"}, "an image", 'Node image "DEBIAN" is not supported'),
    ("cpu", {"location": "us-central1"}, "a cluster that there is", "locations/us-central1/clusters/train"),
    (
        "cpu",
        {"cluster": "projects/acme-ml/locations/us-central1-a/clusters/train", "location": "us-central1-b"},
        "in the cluster's location",
        'Location "us-central1-b" is not that of the cluster.',
    ),
    (
        "cpu",
        {"autoscaling__maxNodeCount": 3},
        "totals or limits per zone",
        "Cannot specify both total node count limits",
    ),
    # hashicorp/terraform-provider-google#5441
    (
        "cpu",
        {"autoscaling": {"minNodeCount": 2, "maxNodeCount": 1}},
        "a maximum not below the minimum",
        "Min node count (2) cannot be greater than max node count (1).",
    ),
    ("cpu", total(0, 0), "a maximum not below the minimum", "must be at least 1"),
    (
        "cpu",
        {"nodeLocations": ["us-east1-b"]},
        "zones of the region",
        'Location "us-east1-b" is not a zone of region "us-central1".',
    ),
    (
        "cpu",
        {"nodeLocations": ["us-central1-a", "us-central1-a"]},
        "zones of the region",
        "must be unique",
    ),
    ("cpu", {"maxPodsPerNode": 300}, "pods per node", "between 8 and 256, got 300"),
    (
        "cpu",
        {"upgradeSettings": {"maxSurge": 0, "maxUnavailable": 0}},
        "surge or unavailable",
        "cannot both be 0",
    ),
    # hashicorp/terraform-provider-google#6003, #19677
    (
        "cpu",
        {"nodeConfig__labels": {"node-role.kubernetes.io/worker": ""}},
        "labels of nodes",
        "its prefix is reserved by Kubernetes",
    ),
    ("cpu", {"nodeConfig__labels": {"-team": "a"}}, "labels of nodes", "not a valid label key"),
    ("cpu", {"nodeConfig__labels": {"team": "a b"}}, "labels of nodes", "not a valid value"),
    ("cpu", {"nodeConfig__taints": [_taint("a b")]}, "taints", "is not a valid taint"),
    ("cpu", {"nodeConfig__taints": [_taint("a", "x" * 64)]}, "taints", "is not a valid taint"),
    ("cpu", {"nodeConfig__taints": [_taint("a"), _taint("a", "b")]}, "taints", 'Duplicate taint "a"'),
    (
        "cpu",
        {"nodeConfig__serviceAccount": "nodes"},
        "a service account by e-mail",
        'Service account "nodes" does not exist.',
    ),
    (
        "cpu",
        {"nodeConfig__tags": ["Allow SSH"]},
        "network tags",
        "Invalid value for field 'tags': 'Allow SSH'.",
    ),
    (
        "cpu",
        {"nodeConfig__resourceLabels": {"Owner": "me"}},
        "labels of the bill",
        "Invalid label key 'Owner'",
    ),
    (
        "cpu",
        {"nodeConfig__resourceLabels": {f"label-{number}": "" for number in range(65)}},
        "labels of the bill",
        "65 labels, and the limit is 64",
    ),
]
