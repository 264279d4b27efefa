"""Promises of the components: an input or an option for each, of a whole declaration on Pulumi's mocks."""
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from typing import Any, Final

import pulumi
import pytest

from components import aks, gke
from components.aks.node_pool import POOLS as AKS_POOLS
from components.gke.node_pool import POOLS as GKE_POOLS
from components.node_pools import ImmutableInputError, ImmutableInputs
from ebbtide.declaration.model.declare import declare
from ebbtide.values.paths import value_at
from tests.running import full
from tests.unit.mocks.mocked import AKS, Mocks

_GKE: Final = declare(full("gke", pipelines={"artifacts": "bucket"}, drivers="daemonset"))
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_ENFORCED: Final = 'metadata.labels["pod-security.kubernetes.io/enforce"]'
_POD: Final = "spec.template.spec"
_REQUIRED: Final = f"{_POD}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_POOLS_OF: Final = f"{_REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
_SPOT: Final = "NO_RESERVATION"

GKE_PROMISES: Final[dict[str, tuple[str, str, object]]] = {
    # The cluster.
    "nodes have no public address": (
        "Cluster train-cluster",
        "privateClusterConfig.enablePrivateNodes",
        True,
    ),
    "the API server is reached by its DNS name": (
        "Cluster train-cluster",
        "controlPlaneEndpointsConfig.dnsEndpointConfig.allowExternalTraffic",
        True,
    ),
    "the API server has no address unless networks are declared": (
        "Cluster train-cluster",
        "controlPlaneEndpointsConfig.ipEndpointsConfig.enabled",
        False,
    ),
    "any Google account is not a user": (
        "Cluster train-cluster",
        "rbacBindingConfig.enableInsecureBindingSystemAuthenticated",
        False,
    ),
    "an anonymous client is not a user": (
        "Cluster train-cluster",
        "rbacBindingConfig.enableInsecureBindingSystemUnauthenticated",
        False,
    ),
    "network policies are enforced": ("Cluster train-cluster", "datapathProvider", "ADVANCED_DATAPATH"),
    "pods have identities without keys": (
        "Cluster train-cluster",
        "workloadIdentityConfig.workloadPool",
        "acme-ml.svc.id.goog",
    ),
    "only declared pools are created": ("Cluster train-cluster", "clusterAutoscaling.enabled", False),
    "idle nodes are removed early": (
        "Cluster train-cluster",
        "clusterAutoscaling.autoscalingProfile",
        "OPTIMIZE_UTILIZATION",
    ),
    "GKE refuses to delete a permanent cluster": ("Cluster train-cluster", "deletionProtection", True),
    "the default pool is removed": ("Cluster train-cluster", "removeDefaultNodePool", True),
    "the default pool hides the metadata server": (
        "Cluster train-cluster",
        "nodeConfig.workloadMetadataConfig.mode",
        "GKE_METADATA",
    ),
    "managed Prometheus is off unless declared": (
        "Cluster train-cluster",
        "monitoringConfig.managedPrometheus.enabled",
        False,
    ),
    # Node pools.
    "pods do not reach the node's own account": (
        "NodePool train-cpu",
        "nodeConfig.workloadMetadataConfig.mode",
        "GKE_METADATA",
    ),
    "legacy metadata endpoints are off": (
        "NodePool train-cpu",
        'nodeConfig.metadata["disable-legacy-endpoints"]',
        "true",
    ),
    "the kubelet's read-only port is closed": (
        "NodePool train-cpu",
        "nodeConfig.kubeletConfig.insecureKubeletReadonlyPortEnabled",
        "FALSE",
    ),
    "CPU limits hold": ("NodePool train-cpu", "nodeConfig.kubeletConfig.cpuCfsQuota", True),
    "nodes without GPUs boot securely": (
        "NodePool train-cpu",
        "nodeConfig.shieldedInstanceConfig.enableSecureBoot",
        True,
    ),
    "drivers that a DaemonSet builds can be loaded": (
        "NodePool train-t4",
        "nodeConfig.shieldedInstanceConfig.enableSecureBoot",
        False,
    ),
    "GKE installs no driver beside the DaemonSet's": (
        "NodePool train-t4",
        "nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig.gpuDriverVersion",
        "INSTALLATION_DISABLED",
    ),
    "a node's rights are its account's grants": ("NodePool train-cpu", "nodeConfig.oauthScopes", [_SCOPE]),
    "spot nodes are tainted": (
        "NodePool train-cpu",
        "nodeConfig.taints",
        [{"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}],
    ),
    "spot nodes use no reservation": (
        "NodePool train-cpu",
        "nodeConfig.reservationAffinity.consumeReservationType",
        _SPOT,
    ),
    "queued nodes use no reservation": (
        "NodePool train-a100",
        "nodeConfig.reservationAffinity.consumeReservationType",
        _SPOT,
    ),
    "queued nodes end after a week": ("NodePool train-a100", "nodeConfig.maxRunDuration", "604800s"),
    "GKE repairs no queued node": ("NodePool train-a100", "management.autoRepair", False),
    "a pool starts without nodes": ("NodePool train-t4", "initialNodeCount", 0),
    "an autoscaled pool has no fixed count": ("NodePool train-t4", "nodeCount", None),
    "nodes carry their pool's name": ("NodePool train-t4", 'nodeConfig.labels["ebbtide.dev/pool"]', "t4"),
    "nodes are billed by pool": ("NodePool train-t4", 'nodeConfig.resourceLabels["ebbtide-pool"]', "t4"),
    # The network.
    "the network has declared subnets alone": ("Network train-network-vpc", "autoCreateSubnetworks", False),
    "private nodes reach Google's APIs": ("Subnetwork train-network-subnet", "privateIpGoogleAccess", True),
    "egress is for the cluster's subnet alone": (
        "RouterNat train-network-nat",
        "sourceSubnetworkIpRangesToNat",
        "LIST_OF_SUBNETWORKS",
    ),
    # Teams.
    "a bucket is never public": ("Bucket train-team-vision-bucket", "publicAccessPrevention", "enforced"),
    "a bucket has no rights by object": ("Bucket train-team-vision-bucket", "uniformBucketLevelAccess", True),
    "a permanent team's bucket is not emptied": ("Bucket train-team-vision-bucket", "forceDestroy", False),
    "pipelines' bucket is never public": (
        "Bucket train-artifacts-bucket",
        "publicAccessPrevention",
        "enforced",
    ),
    "a team's pods act as its account": (
        "IAMMember train-team-vision-workload",
        "member",
        "serviceAccount:acme-ml.svc.id.goog[vision/worker]",
    ),
    "files are for the cluster's nodes alone": (
        "Instance train-team-audio-files",
        "fileShares.nfsExportOptions[0].ipRanges",
        ["10.0.0.0/20"],
    ),
    "members fetch the kubeconfig, and nothing else": (
        "IAMMember train-members-vision@acme.example",
        "role",
        "roles/container.clusterViewer",
    ),
    # Drivers.
    "drivers are installed on GPU pools alone": (
        "DaemonSet train-addons-drivers-installer-cos",
        _POOLS_OF,
        {"key": "ebbtide.dev/pool", "operator": "In", "values": ["t4", "a100"]},
    ),
    "the installer may load a kernel module": (
        "DaemonSet train-addons-drivers-installer-cos",
        f"{_POD}.initContainers[0].securityContext.privileged",
        True,
    ),
}

AKS_PROMISES: Final[dict[str, tuple[str, str, object]]] = {
    # The cluster.
    "no local account exists": ("ManagedCluster train-cluster", "disableLocalAccounts", True),
    "Azure's roles decide who may do what": (
        "ManagedCluster train-cluster",
        "aadProfile.enableAzureRBAC",
        True,
    ),
    "no command runs around the API server's ranges": (
        "ManagedCluster train-cluster",
        "apiServerAccessProfile.disableRunCommand",
        True,
    ),
    "pods have identities without keys": (
        "ManagedCluster train-cluster",
        "securityProfile.workloadIdentity.enabled",
        True,
    ),
    "the issuer of pods' tokens is on": ("ManagedCluster train-cluster", "oidcIssuerProfile.enabled", True),
    "network policies are enforced": (
        "ManagedCluster train-cluster",
        "networkProfile.networkPolicy",
        "cilium",
    ),
    "pods have addresses of their own": (
        "ManagedCluster train-cluster",
        "networkProfile.networkPluginMode",
        "overlay",
    ),
    "system pods keep no idle work node": (
        "ManagedCluster train-cluster",
        "autoScalerProfile.skipNodesWithSystemPods",
        "false",
    ),
    "DaemonSets do not make a node look used": (
        "ManagedCluster train-cluster",
        "autoScalerProfile.ignoreDaemonsetsUtilization",
        True,
    ),
    "managed Prometheus is off unless declared": (
        "ManagedCluster train-cluster",
        "azureMonitorProfile.metrics.enabled",
        False,
    ),
    "the system pool has no public address": (
        "ManagedCluster train-cluster",
        "agentPoolProfiles[0].enableNodePublicIP",
        False,
    ),
    # Agent pools.
    "nodes have no public address": ("AgentPool train-t4", "enableNodePublicIP", False),
    "removed nodes are deleted, and cost nothing": ("AgentPool train-t4", "scaleDownMode", "Delete"),
    "evicted spot machines are deleted": ("AgentPool train-t4", "scaleSetEvictionPolicy", "Delete"),
    "spot nodes are evicted for stock, not for price": ("AgentPool train-t4", "spotMaxPrice", -1),
    "spot and GPU nodes are tainted": (
        "AgentPool train-t4",
        "nodeTaints",
        ["kubernetes.azure.com/scalesetpriority=spot:NoSchedule", "nvidia.com/gpu=present:NoSchedule"],
    ),
    "on-demand work nodes are tainted": (
        "AgentPool train-steady",
        "nodeTaints",
        ["ebbtide.dev/pool=steady:NoSchedule"],
    ),
    "AKS installs the GPU driver": ("AgentPool train-t4", "gpuProfile.driver", "Install"),
    "an autoscaled pool has no fixed count": ("AgentPool train-t4", "count", None),
    "work does not run in the system mode": ("AgentPool train-t4", "mode", "User"),
    "nodes carry their pool's name": ("AgentPool train-t4", 'nodeLabels["ebbtide.dev/pool"]', "t4"),
    # The network.
    "nodes have no outbound access of their own": (
        "Subnet train-network-subnet",
        "defaultOutboundAccess",
        False,
    ),
    # Teams.
    "a bucket is never public": ("StorageAccount train-team-vision-bucket", "allowBlobPublicAccess", False),
    "a bucket has no keys": ("StorageAccount train-team-vision-bucket", "allowSharedKeyAccess", False),
    "a bucket speaks TLS 1.2": ("StorageAccount train-team-vision-bucket", "minimumTlsVersion", "TLS1_2"),
    "a file share is for the nodes' subnet alone": (
        "StorageAccount train-team-audio-files",
        "networkRuleSet.defaultAction",
        "Deny",
    ),
    "Azure's services reach no file share": (
        "StorageAccount train-team-audio-files",
        "networkRuleSet.bypass",
        "None",
    ),
    "a registry has no admin account": (
        "Registry train-team-vision-images-registry",
        "adminUserEnabled",
        False,
    ),
    "a team's pods act as its identity": (
        "FederatedIdentityCredential train-team-vision-workload",
        "subject",
        "system:serviceaccount:vision:worker",
    ),
    "pods do not reach the instance metadata": (
        "NetworkPolicy train-addons-team-vision-networkpolicy-no-instance-metadata",
        "spec.egress[0].to[1].ipBlock.except",
        ["169.254.169.254/32"],
    ),
    "audit logs are kept": (
        "DiagnosticSetting train-log-collection-audit",
        "logs[0]",
        {"category": "kube-audit-admin", "enabled": True},
    ),
    # Drivers.
    "the device plugin runs on GPU pools alone": (
        "DaemonSet train-addons-drivers-device-plugin",
        _POOLS_OF,
        {"key": "ebbtide.dev/pool", "operator": "In", "values": ["t4"]},
    ),
    "the device plugin has no capability": (
        "DaemonSet train-addons-drivers-device-plugin",
        f"{_POD}.containers[0].securityContext.capabilities.drop",
        ["ALL"],
    ),
}

BOTH_PROMISES: Final[dict[str, tuple[str, str, object]]] = {
    "a team's pods take no host namespace or path": (
        "Namespace train-addons-team-vision-namespace-vision",
        _ENFORCED,
        "baseline",
    ),
    "Kueue's pods are restricted": ("Namespace train-addons-kueue-namespace", _ENFORCED, "restricted"),
    "the recorder's pods are restricted": ("Namespace train-addons-costs-namespace", _ENFORCED, "restricted"),
    "other teams' pods do not reach a team's": (
        "NetworkPolicy train-addons-team-vision-networkpolicy-own-namespace",
        "spec.ingress",
        [{"from": [{"podSelector": {}}]}],
    ),
    "the record of costs is reached by no pod": (
        "NetworkPolicy train-addons-costs-networkpolicy-no-ingress",
        "spec.ingress",
        [],
    ),
    "a team's work must name a queue": (
        "Namespace train-addons-team-vision-namespace-vision",
        'metadata.labels["ebbtide.dev/queue-required"]',
        "true",
    ),
    "a team leaves no load balancer behind": (
        "ResourceQuota train-addons-team-vision-resourcequota-nothing-left-behind",
        'spec.hard["services.loadbalancers"]',
        "0",
    ),
    "a team's pods have no token unless they ask for it": (
        "ServiceAccount train-addons-team-vision-serviceaccount-worker",
        "automountServiceAccountToken",
        False,
    ),
    "the cluster's drivers precede all other pods": (
        "DaemonSet train-addons-drivers-",
        f"{_POD}.priorityClassName",
        "system-node-critical",
    ),
}

_DEPLOYED: Final[dict[str, Mocks]] = {}


def _deployed(cloud: str, mocks: Mocks) -> Mocks:
    """Return the resources of a whole declaration, made once for all promises."""

    @pulumi.runtime.test
    def program() -> None:
        if cloud == "gke":
            gke.deploy(_GKE, gke.provider("gcp", _GKE))
        else:
            aks.deploy(AKS, aks.provider("azure", AKS))

    if cloud not in _DEPLOYED:
        program()
        _DEPLOYED[cloud] = mocks
    return _DEPLOYED[cloud]


def _inputs(mocks: Mocks, resource: str) -> dict[str, Any]:
    """Return the inputs of the resource with the last word of a type and a name, or a name's beginning."""
    kind, name = resource.split(" ")
    found = [
        args.inputs
        for args in mocks.resources
        if args.typ.rpartition(":")[2] == kind and not args.typ.startswith("ebbtide:")
        if args.name == name or (name.endswith("-") and args.name.startswith(name))
    ]
    assert len(found) == 1, resource
    return found[0]


@pytest.mark.parametrize(
    ("cloud", "promise"),
    [
        *(("gke", promise) for promise in (*GKE_PROMISES, *BOTH_PROMISES)),
        *(("aks", promise) for promise in (*AKS_PROMISES, *BOTH_PROMISES)),
    ],
)
def test_promise(mocks: Mocks, cloud: str, promise: str) -> None:
    """The named resource has the input that keeps the promise."""
    resource, path, expected = ({"gke": GKE_PROMISES, "aks": AKS_PROMISES}[cloud] | BOTH_PROMISES)[promise]
    assert value_at(_inputs(_deployed(cloud, mocks), resource), path) == expected


@pytest.mark.parametrize(
    ("cloud", "kept"),
    [
        ("gke", {"train-team-vision-bucket", "train-team-vision-images-repository"}),
        (
            "aks",
            {
                "train-team-vision-kept",
                "train-team-vision-bucket",
                "train-team-vision-container",
                "train-team-vision-images-kept",
                "train-team-vision-images-registry",
            },
        ),
    ],
)
def test_a_permanent_clusters_data_is_kept(mocks: Mocks, cloud: str, kept: set[str]) -> None:
    """Deleting the stack of a permanent cluster deletes no bucket and no registry."""
    assert kept <= _deployed(cloud, mocks).retained


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_updates_of_pools_are_checked(mocks: Mocks, cloud: str) -> None:
    """Each node pool has the hook that refuses a change for which the cloud would replace the pool."""
    hooks = _deployed(cloud, mocks).hooks
    pools = {"gke": {"train-cpu", "train-t4", "train-a100"}, "aks": {"train-cpu", "train-t4", "train-steady"}}
    assert {name for name, bound in hooks.items() if f"ebbtide:{cloud}:fixed-pool-inputs" in bound} >= pools[
        cloud
    ]


@pytest.mark.parametrize(
    ("inputs", "old", "new", "says"),
    [
        (GKE_POOLS, {"spot": True}, {"spot": False}, "spot"),
        (AKS_POOLS, {"vmSize": "Standard_D8s_v5"}, {"vmSize": "Standard_D4s_v5"}, "vmSize"),
    ],
    ids=["gke", "aks"],
)
def test_a_pool_is_not_replaced(
    inputs: ImmutableInputs, old: dict[str, Any], new: dict[str, Any], says: str
) -> None:
    """A change that needs another pool is refused, with the pool's name."""
    name = {inputs.name: "t4", "mode": "User"}
    args = pulumi.ResourceHookArgs(
        urn="", id="", name="t4", type="", new_inputs={**name, **new}, old_inputs={**name, **old}
    )
    with pytest.raises(ImmutableInputError, match=rf"node pool t4: .*{says}"):
        inputs.refuse(args)
