"""Record the same resources written by hand, without components and without a declaration."""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from ebbtide.analysis.recording.record import record  # noqa: E402
from ebbtide.lazy_packages import collect_rarely  # noqa: E402

collect_rarely()  # as the command line does


def program() -> None:
    """Create a zonal cluster with its network, identity and node pools, as an experienced user would write
    it."""
    import pulumi  # noqa: PLC0415
    import pulumi_gcp as gcp  # noqa: PLC0415
    import pulumi_kubernetes as kubernetes  # noqa: PLC0415

    provider = gcp.Provider("gcp", project="acme-ml", region="us-central1")
    inside = pulumi.ResourceOptions(provider=provider)
    vpc = gcp.compute.Network("vpc", name="train", auto_create_subnetworks=False, opts=inside)
    subnet = gcp.compute.Subnetwork(
        "subnet",
        name="train",
        network=vpc.id,
        region="us-central1",
        ip_cidr_range="10.0.0.0/20",
        secondary_ip_ranges=[
            {"range_name": "pods", "ip_cidr_range": "10.4.0.0/14"},
            {"range_name": "services", "ip_cidr_range": "10.8.0.0/20"},
        ],
        private_ip_google_access=True,
        opts=inside,
    )
    router = gcp.compute.Router("router", network=vpc.id, region="us-central1", opts=inside)
    nat = gcp.compute.RouterNat(
        "nat",
        router=router.name,
        region="us-central1",
        nat_ip_allocate_option="AUTO_ONLY",
        source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
        opts=inside,
    )
    account = gcp.serviceaccount.Account("nodes", account_id="train-nodes", opts=inside)
    grants = [
        gcp.projects.IAMMember(
            f"grant-{index}", project="acme-ml", role=role, member=account.member, opts=inside
        )
        for index, role in enumerate(
            ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
        )
    ]
    cluster = gcp.container.Cluster(
        "train",
        name="train",
        location="us-central1-a",
        network=vpc.self_link,
        subnetwork=subnet.self_link,
        networking_mode="VPC_NATIVE",
        ip_allocation_policy={
            "cluster_secondary_range_name": "pods",
            "services_secondary_range_name": "services",
        },
        private_cluster_config={"enable_private_nodes": True},
        workload_identity_config={"workload_pool": "acme-ml.svc.id.goog"},
        remove_default_node_pool=True,
        initial_node_count=1,
        opts=inside,
    )

    tainted: gcp.container.NodePoolNodeConfigTaintArgsDict = {
        "key": "cloud.google.com/gke-spot",
        "value": "true",
        "effect": "NO_SCHEDULE",
    }

    def node_pool(name: str, machine_type: str, minimum: int, maximum: int, *, spot: bool = False) -> Any:
        return gcp.container.NodePool(
            name,
            name=name,
            cluster=cluster.name,
            location="us-central1-a",
            initial_node_count=minimum,
            autoscaling={
                "total_min_node_count": minimum,
                "total_max_node_count": maximum,
                "location_policy": "ANY",
            },
            management={"auto_repair": True, "auto_upgrade": True},
            node_config={
                "machine_type": machine_type,
                "disk_size_gb": 100,
                "disk_type": "pd-balanced",
                "image_type": "COS_CONTAINERD",
                "service_account": account.email,
                "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
                "labels": {"pool": name},
                "workload_metadata_config": {"mode": "GKE_METADATA"},
                "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
                "metadata": {"disable-legacy-endpoints": "true"},
                "resource_labels": {"cluster": "train", "owner": "vision-team"},
                "spot": spot or None,
                "taints": [tainted] if spot else None,
            },
            opts=pulumi.ResourceOptions(
                provider=provider,
                ignore_changes=["initialNodeCount"],
                deleted_with=cluster,
                depends_on=[nat, *grants],
            ),
        )

    system = node_pool("system", "e2-standard-4", 1, 3)
    for index in range(int(sys.argv[1])):
        node_pool(f"pool-{index}", "n2-standard-8", 0, 10, spot=True)
    host = cluster.control_plane_endpoints_config.dns_endpoint_config.endpoint
    kubeconfig = pulumi.Output.secret(host.apply(lambda server: json.dumps({"server": server})))
    kubernetes.Provider("kubernetes", kubeconfig=kubeconfig, opts=pulumi.ResourceOptions(depends_on=[system]))
    pulumi.export("kubeconfig", kubeconfig)


record(program, project="flat", stack="bench")
