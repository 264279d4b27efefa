"""Descriptions of GKE clusters, as Kubernetes Engine's API returns them, in the shapes of public examples.

Written by hand from what the examples declare and what the API fills in (googleapis,
google/container/v1/cluster_service.proto, 2026); each shape names its source.
"""

from typing import Any, cast

Document = dict[str, Any]

_PROJECT = "acme-ml"
_API = "https://container.googleapis.com/v1"
_SCOPES = [
    "https://www.googleapis.com/auth/devstorage.read_only",
    "https://www.googleapis.com/auth/logging.write",
    "https://www.googleapis.com/auth/monitoring",
    "https://www.googleapis.com/auth/service.management.readonly",
    "https://www.googleapis.com/auth/servicecontrol",
    "https://www.googleapis.com/auth/trace.append",
]
"""The scopes of nodes that gcloud creates (`gke-default`)."""


def merged(under: Document, over: Document) -> Document:
    """Return a document with another one's values; None removes one."""
    result = dict(under)
    for key, value in over.items():
        old = result.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        result[key] = merged(cast("Document", old), cast("Document", value)) if both else value
    return {key: value for key, value in result.items() if value is not None}


def pool(name: str, machine: str, **changes: Any) -> Document:
    """Return a node pool with what the API fills in."""
    return merged(
        {
            "name": name,
            "config": {
                "machineType": machine,
                "diskSizeGb": 100,
                "diskType": "pd-balanced",
                "bootDisk": {"diskType": "pd-balanced", "sizeGb": "100"},
                "effectiveCgroupMode": "EFFECTIVE_CGROUP_MODE_V2",
                "imageType": "COS_CONTAINERD",
                "kubeletConfig": {"insecureKubeletReadonlyPortEnabled": False, "maxParallelImagePulls": 2},
                "metadata": {"disable-legacy-endpoints": "true"},
                "oauthScopes": _SCOPES,
                "resourceLabels": {"goog-gke-node-pool-provisioning-model": "on-demand"},
                "serviceAccount": "default",
                "shieldedInstanceConfig": {"enableIntegrityMonitoring": True},
                "windowsNodeConfig": {},
                "workloadMetadataConfig": {"mode": "GKE_METADATA"},
            },
            "etag": "0d6f2c3e",
            "initialNodeCount": 1,
            "instanceGroupUrls": [f"https://www.googleapis.com/compute/v1/projects/{_PROJECT}/g"],
            "locations": ["us-central1-a"],
            "management": {"autoRepair": True, "autoUpgrade": True},
            "maxPodsConstraint": {"maxPodsPerNode": "110"},
            "networkConfig": {"podIpv4CidrBlock": "10.4.0.0/14", "podRange": "gke-c-pods-0d6f2c3e"},
            "podIpv4CidrSize": 24,
            "selfLink": "",
            "status": "RUNNING",
            "upgradeSettings": {"maxSurge": 1, "strategy": "SURGE"},
            "version": "1.33.5-gke.1080000",
        },
        changes,
    )


def cluster(name: str, location: str, pools: list[Document], **changes: Any) -> Document:
    """Return a cluster with what the API fills in."""
    link = f"{_API}/projects/{_PROJECT}/locations/{location}/clusters/{name}"
    region = location if location.count("-") == 1 else location.rpartition("-")[0]
    zones = [location] if region != location else [f"{region}-{zone}" for zone in "abc"]
    identity = changes.get("workloadIdentityConfig")
    ranges: Document = changes.get("ipAllocationPolicy") or {}
    own: Document = {} if identity else {"config": {"workloadMetadataConfig": None}}
    if pods := ranges.get("clusterSecondaryRangeName"):
        own["networkConfig"] = {"podRange": pods}
    pools = [merged({**item, "selfLink": f"{link}/nodePools/{item['name']}"}, own) for item in pools]
    document: Document = {
        "addonsConfig": {
            "dnsCacheConfig": {"enabled": True},
            "gcePersistentDiskCsiDriverConfig": {"enabled": True},
            "kubernetesDashboard": {"disabled": True},
            "networkPolicyConfig": {"disabled": True},
        },
        "autopilot": {},
        "autoscaling": {"autoscalingProfile": "BALANCED"},
        "binaryAuthorization": {},
        "clusterIpv4Cidr": "10.4.0.0/14",
        "controlPlaneEndpointsConfig": {
            "dnsEndpointConfig": {
                "allowExternalTraffic": False,
                "endpoint": f"gke-0d6f.{region}.gke.goog",
            },
            "ipEndpointsConfig": {
                "authorizedNetworksConfig": {"gcpPublicCidrsAccessEnabled": True},
                "enablePublicEndpoint": True,
                "enabled": True,
                "privateEndpoint": "10.128.0.2",
                "publicEndpoint": "203.0.113.7",
            },
        },
        "createTime": "2025-10-14T08:12:33+00:00",
        "currentMasterVersion": "1.33.5-gke.1080000",
        "currentNodeCount": 3,
        "databaseEncryption": {"currentState": "CURRENT_STATE_DECRYPTED", "state": "DECRYPTED"},
        "defaultMaxPodsConstraint": {"maxPodsPerNode": "110"},
        "endpoint": "203.0.113.7",
        "id": "0d6f2c3e",
        "initialClusterVersion": "1.33.4-gke.1134000",
        "ipAllocationPolicy": {
            "clusterIpv4Cidr": "10.4.0.0/14",
            "clusterIpv4CidrBlock": "10.4.0.0/14",
            "clusterSecondaryRangeName": "gke-c-pods-0d6f2c3e",
            "defaultPodIpv4CidrUtilization": 0.003,
            "servicesIpv4Cidr": "34.118.224.0/20",
            "servicesIpv4CidrBlock": "34.118.224.0/20",
            "stackType": "IPV4",
            "useIpAliases": True,
        },
        "labelFingerprint": "a9dc16a7",
        "legacyAbac": {},
        "location": location,
        "locations": zones,
        "loggingConfig": {
            "componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]},
        },
        "loggingService": "logging.googleapis.com/kubernetes",
        "maintenancePolicy": {"resourceVersion": "e3b0c442"},
        "masterAuth": {"clientCertificateConfig": {}, "clusterCaCertificate": "LS0tLS1CRUdJTg=="},
        "masterAuthorizedNetworksConfig": {"gcpPublicCidrsAccessEnabled": True},
        "monitoringConfig": {
            "advancedDatapathObservabilityConfig": {},
            "componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS"]},
            "managedPrometheusConfig": {"enabled": True},
        },
        "monitoringService": "monitoring.googleapis.com/kubernetes",
        "name": name,
        "network": "default",
        "networkConfig": {
            "datapathProvider": "ADVANCED_DATAPATH",
            "defaultEnablePrivateNodes": False,
            "defaultSnatStatus": {},
            "network": f"projects/{_PROJECT}/global/networks/default",
            "serviceExternalIpsConfig": {},
            "subnetwork": f"projects/{_PROJECT}/regions/{region}/subnetworks/default",
        },
        "nodeConfig": dict(pools[0]["config"]) if pools else {},
        "nodePoolDefaults": {
            "nodeConfigDefaults": {"loggingConfig": {"variantConfig": {"variant": "DEFAULT"}}}
        },
        "nodePools": pools,
        "notificationConfig": {"pubsub": {}},
        "privateClusterConfig": {"privateEndpoint": "10.128.0.2", "publicEndpoint": "203.0.113.7"},
        "releaseChannel": {"channel": "REGULAR"},
        "rbacBindingConfig": {
            "enableInsecureBindingSystemAuthenticated": True,
            "enableInsecureBindingSystemUnauthenticated": True,
        },
        "securityPostureConfig": {"mode": "BASIC", "vulnerabilityMode": "VULNERABILITY_MODE_UNSPECIFIED"},
        "selfLink": link,
        "servicesIpv4Cidr": "34.118.224.0/20",
        "shieldedNodes": {"enabled": True},
        "status": "RUNNING",
        "subnetwork": "default",
        "zone": location,
    }
    return merged(document, changes)


_CLOUD_PLATFORM = {"oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"]}
_IDENTITY = {"workloadIdentityConfig": {"workloadPool": f"{_PROJECT}.svc.id.goog"}}
_PRESENT = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]


def _gpus(kind: str, count: int, driver: str = "DEFAULT", **more: Any) -> Document:
    installation = {"gpuDriverVersion": driver}
    accelerator = {"acceleratorType": kind, "acceleratorCount": f"{count}"}
    return {"accelerators": [{**accelerator, "gpuDriverInstallationConfig": installation, **more}]}


def _network(network: str, pods: str = "pods", services: str | None = "services") -> Document:
    """Return an own network with named ranges."""
    policy: Document = {"clusterSecondaryRangeName": pods, "servicesSecondaryRangeName": services}
    return {
        "ipAllocationPolicy": {key: value for key, value in policy.items() if value},
        "networkConfig": {
            "network": f"projects/{_PROJECT}/global/networks/{network}",
            "subnetwork": f"projects/{_PROJECT}/regions/us-central1/subnetworks/{network}",
        },
    }


def _authorized(*blocks: str) -> Document:
    listed = [{"cidrBlock": block, "displayName": "kubectl-access-network"} for block in blocks]
    return {"masterAuthorizedNetworksConfig": {"enabled": True, "cidrBlocks": listed}}


_PRIVATE: Document = {
    "privateClusterConfig": {
        "enablePrivateNodes": True,
        "masterIpv4CidrBlock": "172.16.0.32/28",
        "masterGlobalAccessConfig": {"enabled": True},
    }
}
_TOOLKIT_LABELS = {"ghpc_blueprint": "gke", "ghpc_deployment": "gke-01", "ghpc_role": "compute"}


def _toolkit_pool(name: str, machine: str, config: Document, **changes: Any) -> Document:
    """Return a pool of the toolkit's module gke-node-pool."""
    own = {
        **_CLOUD_PLATFORM,
        "gvnic": {"enabled": True},
        "labels": {"ebbtide.example/role": "compute"},
        "resourceLabels": _TOOLKIT_LABELS,
        "serviceAccount": f"gke-np@{_PROJECT}.iam.gserviceaccount.com",
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True, "enableSecureBoot": True},
    }
    upgrade = {"upgradeSettings": {"maxSurge": None, "maxUnavailable": 1, "strategy": "SURGE"}}
    return pool(name, machine, config=merged(own, config), **upgrade, **changes)


def _toolkit(name: str, pools: list[Document], **changes: Any) -> Document:
    """Return a cluster of the toolkit's module gke-cluster, with its system pool."""
    system = _toolkit_pool(
        "system",
        "e2-standard-16",
        {"diskSizeGb": 200, "bootDisk": {"sizeGb": "200"}},
        autoscaling={
            "enabled": True,
            "totalMinNodeCount": 2,
            "totalMaxNodeCount": 1000,
            "locationPolicy": "BALANCED",
        },
        locations=["us-central1-a", "us-central1-b", "us-central1-c"],
    )
    window = {
        "dailyMaintenanceWindow": {"startTime": "09:00", "duration": "PT4H0M0S"},
        "maintenanceExclusions": {"no-minor-or-node-upgrades-indefinite": _until_end_of_support()},
    }
    own = {
        **_IDENTITY,
        **_PRIVATE,
        **_authorized("198.51.100.7/32"),
        **merged(_network("gke-net-0"), {"networkConfig": {"enableMultiNetworking": True}}),
        "addonsConfig": {
            "gcpFilestoreCsiDriverConfig": {"enabled": True},
            "gcsFuseCsiDriverConfig": {"enabled": True},
            "lustreCsiDriverConfig": {"enabled": True},
        },
        "maintenancePolicy": {"window": window},
        "monitoringConfig": {"componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "DCGM"]}},
        "resourceLabels": _TOOLKIT_LABELS,
        "verticalPodAutoscaling": {"enabled": True},
    }
    return cluster(name, "us-central1", [system, *pools], **merged(own, changes))


def _until_end_of_support() -> Document:
    """Return a maintenance exclusion without a fixed end, whose `endTime` GKE computes."""
    options = {"scope": "NO_MINOR_OR_NODE_UPGRADES", "endTimeBehavior": "UNTIL_END_OF_SUPPORT"}
    start, end = "2026-04-01T00:00:00Z", "2027-08-01T00:00:00Z"
    return {"startTime": start, "endTime": end, "maintenanceExclusionOptions": options}


def _nics(prefix: str, count: int) -> Document:
    """Return the additional networks of a node with GPUs."""
    networks: list[Document] = [{"network": f"{prefix}-net-1", "subnetwork": f"{prefix}-sub-1"}]
    rdma = [{"network": f"{prefix}-rdma-net", "subnetwork": f"{prefix}-rdma-sub-{n}"} for n in range(count)]
    return {"networkConfig": {"additionalNodeNetworkConfigs": [*networks, *rdma]}}


def _reserved(name: str) -> Document:
    key = "compute.googleapis.com/reservation-name"
    return {
        "reservationAffinity": {
            "consumeReservationType": "SPECIFIC_RESERVATION",
            "key": key,
            "values": [name],
        }
    }


_HYPERDISK: Document = {"diskType": "hyperdisk-balanced", "bootDisk": {"diskType": "hyperdisk-balanced"}}


def a3_high() -> Document:
    """cluster-toolkit, examples/gke-a3-highgpu/gke-a3-highgpu.yaml (2026-11)."""
    gpus = merged(_gpus("nvidia-h100-80gb", 8), _reserved("a3-high")) | {"taints": _PRESENT}
    nodes = _toolkit_pool("a3-highgpu-pool", "a3-highgpu-8g", gpus, initialNodeCount=2, **_nics("a3", 4))
    return _toolkit("gke-a3-highgpu", [nodes])


def tpu_v6e() -> Document:
    """cluster-toolkit, examples/gke-tpu-v6e/gke-tpu-v6e.yaml (2026-11)."""
    taints = [{"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}]
    nodes = _toolkit_pool(
        "tpu-v6e-pool",
        "ct6e-standard-4t",
        {**_reserved("v6e"), **_HYPERDISK, "taints": taints},
        initialNodeCount=4,
        placementPolicy={"type": "COMPACT", "tpuTopology": "4x4"},
        locations=["us-central1-b"],
    )
    return _toolkit("gke-tpu-v6e", [nodes])


def accelerated_platforms() -> Document:
    """accelerated-platforms, platforms/gke/base/core: a cluster with pools of CPUs, L4 and H100 (2026-11)."""
    account = f"cluster@{_PROJECT}.iam.gserviceaccount.com"
    own = {
        **_CLOUD_PLATFORM,
        "serviceAccount": account,
        "gcfsConfig": {"enabled": True},
        "gvnic": {"enabled": True},
        "resourceLabels": {"environment": "dev"},
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True, "enableSecureBoot": True},
    }
    zones = ["us-central1-a", "us-central1-b", "us-central1-c"]

    def limits(least: int, most: int) -> Document:
        total = {"totalMinNodeCount": least, "totalMaxNodeCount": most}
        return {"autoscaling": {"enabled": True, **total, "locationPolicy": "ANY"}, "locations": zones}

    def tainted(key: str, value: str) -> list[Document]:
        return [{"key": key, "value": value, "effect": "NO_SCHEDULE"}]

    system = pool(
        "system",
        "e2-standard-4",
        config=own | {"taints": tainted("components.gke.io/gke-managed-components", "true")},
        **limits(1, 32),
    )
    cpu = pool(
        "cpu-n4",
        "n4-standard-8",
        config=own
        | {"diskType": "hyperdisk-balanced", "bootDisk": None, "taints": tainted("on-demand", "true")},
        **limits(0, 200),
    )
    l4 = pool(
        "gpu-l4-spot",
        "g2-standard-24",
        config=own
        | _gpus("nvidia-l4", 2, "LATEST")
        | {
            "spot": True,
            "labels": {"resource-type": "gpu"},
            "ephemeralStorageLocalSsdConfig": {"localSsdCount": 2},
            "taints": [*tainted("spot", "true"), *_PRESENT],
        },
        **limits(0, 100),
    )
    h100 = pool(
        "gpu-h100-dws",
        "a3-highgpu-8g",
        config=own
        | _gpus("nvidia-h100-80gb", 8, "LATEST")
        | {
            "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
            "flexStart": True,
            "taints": [*tainted("cloud.google.com/gke-queued", "true"), *_PRESENT],
        },
        queuedProvisioning={"enabled": True},
        upgradeSettings=None,
        management={"autoRepair": None},
        **limits(0, 100),
    )
    provisioned = pool("nap-e2-1", "e2-medium", autoscaling={"enabled": True, "autoprovisioned": True})
    return cluster(
        "acp-dev",
        "us-central1",
        [system, cpu, l4, h100, provisioned],
        **_IDENTITY,
        **_PRIVATE,
        **_authorized("10.0.0.0/16"),
        **merged(
            _network("acp-dev", "gke-acp-dev-pods-1a2b3c4d", None),
            {
                "networkConfig": {
                    "dnsConfig": {"clusterDns": "CLOUD_DNS", "clusterDnsScope": "CLUSTER_SCOPE"},
                    "gatewayApiConfig": {"channel": "CHANNEL_STANDARD"},
                }
            },
        ),
        addonsConfig={
            "gcpFilestoreCsiDriverConfig": {"enabled": True},
            "gcsFuseCsiDriverConfig": {"enabled": True},
            "lustreCsiDriverConfig": {"enabled": True},
            "rayOperatorConfig": {
                "enabled": True,
                "rayClusterLoggingConfig": {"enabled": True},
                "rayClusterMonitoringConfig": {"enabled": True},
            },
        },
        autoscaling={
            "autoscalingProfile": "OPTIMIZE_UTILIZATION",
            "enableNodeAutoprovisioning": True,
            "resourceLimits": [{"resourceType": "cpu", "maximum": "1000"}],
            "autoprovisioningNodePoolDefaults": {"serviceAccount": account, "diskType": "pd-balanced"},
        },
        binaryAuthorization={"evaluationMode": "DISABLED"},
        controlPlaneEndpointsConfig={"dnsEndpointConfig": {"allowExternalTraffic": True}},
        costManagementConfig={"enabled": True},
        loggingConfig={
            "componentConfig": {"enableComponents": ["APISERVER", "SYSTEM_COMPONENTS", "WORKLOADS"]}
        },
        monitoringConfig={
            "advancedDatapathObservabilityConfig": {"enableMetrics": True},
            "componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "POD", "DCGM", "JOBSET"]},
        },
        releaseChannel={"channel": "RAPID"},
        securityPostureConfig={"mode": "BASIC", "vulnerabilityMode": "VULNERABILITY_BASIC"},
    )


def node_pools() -> Document:
    """terraform-google-kubernetes-engine, examples/node_pool/main.tf 44.0 (2026-11)."""
    account = {"serviceAccount": f"gke-nodes@{_PROJECT}.iam.gserviceaccount.com", **_CLOUD_PLATFORM}
    zonal = {"autoscaling": {"enabled": True, "minNodeCount": 1, "maxNodeCount": 2}}
    labels = {"labels": {"all-pools-example": "true", "cluster_name": "node-pool", "node_pool": "pool-01"}}
    one = pool(
        "pool-01",
        "e2-medium",
        config={
            **account,
            **labels,
            "tags": ["gke-node-pool", "pool-01"],
            "metadata": {"shutdown-script": "kubectl drain"},
        },
        **zonal,
    )
    two = pool(
        "pool-02",
        "g2-standard-4",
        config={
            **account,
            **_gpus("nvidia-l4", 1),
            "diskSizeGb": 30,
            "diskType": "pd-standard",
            "taints": _PRESENT,
        },
        management={"autoRepair": None},
        **zonal,
    )
    three = pool(
        "pool-03",
        "n2-standard-2",
        initialNodeCount=2,
        config={
            **account,
            "diskType": "pd-standard",
            "kubeletConfig": {"cpuManagerPolicy": "static", "cpuCfsQuota": True, "podPidsLimit": "4096"},
            "ephemeralStorageLocalSsdConfig": {"localSsdCount": 2},
        },
        locations=["us-central1-b", "us-central1-c"],
        networkConfig={"podRange": "test"},
    )
    five = pool(
        "pool-05",
        "c3-standard-4",
        config={**account, "advancedMachineFeatures": {"enableNestedVirtualization": True}},
    )
    return cluster(
        "node-pool-cluster",
        "us-central1",
        [one, two, three, five],
        **_IDENTITY,
        **_network("gke"),
        controlPlaneEndpointsConfig={"dnsEndpointConfig": {"allowExternalTraffic": True}},
    )


def safer_cluster() -> Document:
    """terraform-google-kubernetes-engine, modules/safer-cluster 44.0 (2026-11)."""
    nodes = pool(
        "default-node-pool",
        "e2-medium",
        config={
            **_CLOUD_PLATFORM,
            "serviceAccount": f"safer-nodes@{_PROJECT}.iam.gserviceaccount.com",
            "tags": ["gke-safer", "gke-safer-default-node-pool"],
            "labels": {"cluster_name": "safer", "node_pool": "default-node-pool"},
        },
        autoscaling={"enabled": True, "minNodeCount": 1, "maxNodeCount": 100, "locationPolicy": "BALANCED"},
        locations=["us-central1-a", "us-central1-b", "us-central1-c"],
    )
    window = {
        "window": {"startTime": "2025-01-01T05:00:00Z", "endTime": "2025-01-01T09:00:00Z"},
        "recurrence": "FREQ=DAILY",
    }
    return cluster(
        "safer-cluster",
        "us-central1",
        [nodes],
        **_IDENTITY,
        **_authorized("10.60.0.0/17"),
        **merged(
            _network("safer", "ip-range-pods", "ip-range-svc"),
            {"networkConfig": {"datapathProvider": "LEGACY_DATAPATH", "enableIntraNodeVisibility": True}},
        ),
        privateClusterConfig={
            "enablePrivateNodes": True,
            "enablePrivateEndpoint": True,
            "masterIpv4CidrBlock": "172.16.0.0/28",
            "masterGlobalAccessConfig": {"enabled": True},
        },
        addonsConfig={"networkPolicyConfig": {"disabled": None}, "horizontalPodAutoscaling": {}},
        binaryAuthorization={"evaluationMode": "PROJECT_SINGLETON_POLICY_ENFORCE"},
        maintenancePolicy={"window": {"recurringWindow": window}},
        networkPolicy={"enabled": True, "provider": "CALICO"},
        notificationConfig={"pubsub": {"enabled": True, "topic": f"projects/{_PROJECT}/topics/updates"}},
        releaseChannel=None,
        verticalPodAutoscaling={"enabled": True},
    )


def xpk() -> Document:
    """xpk, core/cluster and core/nodepool: v5e slices, and a CPU pool of the cluster (2026-11)."""
    scopes = {
        "oauthScopes": [
            _SCOPES[0].replace("read_only", "full_control"),
            *_SCOPES[1:],
            *_CLOUD_PLATFORM["oauthScopes"],
        ]
    }
    default = pool(
        "default-pool",
        "e2-standard-16",
        config=scopes,
        locations=["us-central1-a"],
        autoscaling={
            "enabled": True,
            "totalMinNodeCount": 1,
            "totalMaxNodeCount": 1000,
            "locationPolicy": "BALANCED",
        },
    )
    slices = [
        pool(
            f"xpk-np-{number}",
            "ct5lp-hightpu-4t",
            initialNodeCount=4,
            config={
                **scopes,
                "gvnic": {"enabled": True},
                "hostMaintenancePolicy": {"maintenanceInterval": "AS_NEEDED"},
            },
            maxPodsConstraint={"maxPodsPerNode": "15"},
            placementPolicy={"type": "COMPACT", "tpuTopology": "4x4"},
        )
        for number in range(2)
    ]
    return cluster(
        "xpk",
        "us-central1",
        [default, *slices],
        locations=["us-central1-a"],
        networkConfig={"enableMultiNetworking": True},
        resourceLabels={"gke_product_type": "xpk"},
        controlPlaneEndpointsConfig={"dnsEndpointConfig": {"allowExternalTraffic": True}},
        **_IDENTITY,
        autoscaling={"autoscalingProfile": "OPTIMIZE_UTILIZATION"},
        releaseChannel={"channel": "RAPID"},
    )


_PREEMPTIBLE: Document = {
    "preemptible": True,
    "taints": [{"key": "preemptible", "value": "true", "effect": "NO_SCHEDULE"}],
}


def preemptible_pipelines() -> Document:
    """The cluster of examples/preemptible-pipelines, as gcloud commands created it."""
    own = {"serviceAccount": f"user-4-18-vm@{_PROJECT}.iam.gserviceaccount.com", **_PREEMPTIBLE}
    limits = {"autoscaling": {"enabled": True, "maxNodeCount": 4}, "initialNodeCount": 0}
    cpu = pool("preemptible-cpu-pool", "n1-standard-4", config=own, **limits)
    gpu = pool(
        "preemptible-gpu-pool",
        "n1-standard-8",
        config={**own, **_gpus("nvidia-tesla-t4", 2), "taints": [*_PREEMPTIBLE["taints"], *_PRESENT]},
        **limits,
    )
    return cluster(
        "user-4-18", "us-central1-a", [pool("default-pool", "n1-standard-4", initialNodeCount=2), cpu, gpu]
    )


def research() -> Document:
    """The cluster of examples/research-cluster, as gcloud commands created it."""
    gpu = pool(
        "gpu",
        "n1-standard-8",
        initialNodeCount=0,
        autoscaling={"enabled": True, "maxNodeCount": 4},
        config={
            **_gpus("nvidia-tesla-t4", 1, "INSTALLATION_DISABLED"),
            "taints": [{"key": "gpu", "value": "only", "effect": "NO_SCHEDULE"}, *_PRESENT],
        },
    )
    return cluster(
        "research",
        "europe-west4-a",
        [
            pool("admin", "e2-standard-4", locations=["europe-west4-a"]),
            gpu | {"locations": ["europe-west4-a"]},
        ],
        networkConfig={"datapathProvider": "LEGACY_DATAPATH"},
    )


def queued_gpus() -> Document:
    """The cluster of examples/queued-gpus, as gcloud commands created it."""

    def scheduled(name: str, machine: str, zone: str, gpus: Document) -> Document:
        return pool(
            name,
            machine,
            initialNodeCount=0,
            locations=[zone],
            queuedProvisioning={"enabled": True},
            autoscaling={"enabled": True, "totalMaxNodeCount": 1, "locationPolicy": "ANY"},
            management={"autoRepair": None},
            upgradeSettings=None,
            config={
                **gpus,
                "diskSizeGb": 20,
                "bootDisk": {"sizeGb": "20"},
                "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
                "taints": [
                    {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NO_SCHEDULE"},
                    *_PRESENT,
                ],
            },
        )

    system = pool(
        "system-nodepool",
        "e2-standard-2",
        config={"diskSizeGb": 20, "bootDisk": {"sizeGb": "20"}},
        autoscaling={"enabled": True, "totalMinNodeCount": 1, "totalMaxNodeCount": 3},
        locations=["us-central1-f"],
    )
    return cluster(
        "g-dws-test-cluster",
        "us-central1",
        [
            system,
            scheduled(
                "dws-t4-nodepool", "n1-standard-2", "us-central1-c", _gpus("nvidia-tesla-t4", 1, "LATEST")
            ),
            scheduled(
                "dws-a100-nodepool", "a2-highgpu-1g", "us-central1-a", _gpus("nvidia-tesla-a100", 1, "LATEST")
            ),
        ],
        releaseChannel={"channel": "RAPID"},
        locations=["us-central1-a", "us-central1-c", "us-central1-f"],
    )


SHAPES = (
    *(a3_high, tpu_v6e, accelerated_platforms, node_pools, safer_cluster, xpk),
    *(preemptible_pipelines, research, queued_gpus),
)
"""Functions that describe a cluster each; their names are those of the golden tables."""
