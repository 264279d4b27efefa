"""Descriptions of GKE clusters, as Kubernetes Engine's API returns them, in the shapes of public examples.

Written by hand from what the examples declare and what the API fills in (googleapis,
google/container/v1/cluster_service.proto, 2026); each shape names its source.
"""

from typing import Any

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
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
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
        "nodePools": [merged({**item, "selfLink": f"{link}/nodePools/{item['name']}"}, {}) for item in pools],
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
