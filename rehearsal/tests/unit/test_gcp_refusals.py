"""Google Cloud's refusals of clusters, networks, identities and storage, case by case."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.gcp.cluster_rules import RULES as CLUSTER_RULES
from ebbtide_rehearsal.cloud.gcp.request import (
    ACCOUNT,
    ACCOUNT_MEMBER,
    BUCKET,
    BUCKET_MEMBER,
    CLUSTER,
    FILESTORE,
    NETWORK,
    PROJECT_MEMBER,
    ROUTER,
    ROUTER_NAT,
    SUBNETWORK,
)
from ebbtide_rehearsal.cloud.provider import RefusedError
from rehearsal.tests.unit.gcp_cloud import CLUSTER_ID, Cloud, asked_for, base, with_cluster
from tests.declarations import GKE

VPC = "projects/acme-ml/global/networks/train"
SUBNET = "projects/acme-ml/regions/us-central1/subnetworks/train"
EMAIL = "team@acme-ml.iam.gserviceaccount.com"
BLOCKS = [{"cidrBlock": f"192.0.2.{number}/32"} for number in range(101)]

# What is changed of the cluster, the rule that is broken, and what the API says.
CLUSTERS: list[tuple[dict[str, Any], str, str]] = [
    # terraform-google-modules/terraform-google-kubernetes-engine#444
    ({"location": "mars"}, "a location that exists", 'Location "mars" does not exist., badRequest'),
    (
        {"location": "moon-central1-a"},
        "a location that exists",
        'Location "moon-central1-a" does not exist., badRequest',
    ),
    # gitpod-io/gitpod-gke-guide#21
    ({"network": "lab"}, "a network that there is", 'Network "lab" does not exist.'),
    ({"subnetwork": "lab"}, "a subnetwork of the network", 'Subnetwork "lab" does not exist.'),
    # fabianlee/gcp-gke-clusters-ingress#2
    (
        {"ipAllocationPolicy__clusterSecondaryRangeName": "podz"},
        "ranges of the subnetwork",
        'Pod secondary range "podz" not found in network "train", subnetwork "train".',
    ),
    # gruntwork-io/terraform-google-gke#118
    (
        {"ipAllocationPolicy__clusterSecondaryRangeName": "services"},
        "ranges of the subnetwork",
        "Pod secondary range name (services) should not be the same as service secondary range name.",
    ),
    ({"initialNodeCount": None}, "a node to begin with", "initial_node_count must be greater than zero"),
    (
        {"workloadIdentityConfig__workloadPool": "other.svc.id.goog"},
        "the project's own identities",
        'the default "acme-ml.svc.id.goog"',
    ),
    ({"minMasterVersion": "1.9"}, "a version", 'Master version "1.9" is unsupported.'),
    (
        {"minMasterVersion": "1.31", "releaseChannel": {"channel": "REGULAR"}},
        "a version",
        'Master version "1.31" is unsupported.',
    ),
    ({"resourceLabels__Owner": "me"}, "labels", "Invalid label key 'Owner'"),
    (
        {"masterAuthorizedNetworksConfig": {"cidrBlocks": [{"cidrBlock": "10.0.0.1/8"}]}},
        "authorized networks",
        'network "10.0.0.1/8" is not a valid CIDR block',
    ),
    (
        {"masterAuthorizedNetworksConfig": {"cidrBlocks": BLOCKS}},
        "authorized networks",
        "Too many authorized networks: 101",
    ),
    ({"networkPolicy": {"enabled": True}}, "one network policy engine", "ADVANCED_DATAPATH is not allowed"),
    (
        {"privateClusterConfig": {"enablePrivateNodes": False, "enablePrivateEndpoint": True}},
        "private nodes are VPC-native",
        "only for clusters with private nodes",
    ),
    (
        {"databaseEncryption": {"state": "ENCRYPTED", "keyName": "secrets"}},
        "keys by their names",
        "Invalid Cloud KMS key name: secrets.",
    ),
    (
        {
            "maintenancePolicy": {
                "maintenanceExclusions": [
                    {
                        "exclusionName": "launch",
                        "startTime": "2026-12-01T00:00:00Z",
                        "endTime": "2027-03-15T00:00:00Z",
                        "exclusionOptions": {"scope": "NO_UPGRADES"},
                    }
                ]
            }
        },
        "exclusions within limits",
        "Maintenance exclusion launch is longer than 90 days",
    ),
    (
        {
            "maintenancePolicy": {
                "maintenanceExclusions": [
                    {
                        "exclusionName": f"month-{month}",
                        "startTime": f"2027-0{month}-01T00:00:00Z",
                        "endTime": f"2027-0{month}-02T00:00:00Z",
                    }
                    for month in range(1, 5)
                ]
            }
        },
        "exclusions within limits",
        "Too many maintenance exclusions with scope NO_UPGRADES: 4",
    ),
    (
        {
            "databaseEncryption": {
                "state": "ENCRYPTED",
                "keyName": "projects/p/locations/global/keyRings/r/cryptoKeys/k",
            }
        },
        "keys by their names",
        "is not in the location of the cluster, us-central1",
    ),
    ({"networkingMode": "ROUTES"}, "private nodes are VPC-native", "must be VPC-native"),
]


@pytest.mark.parametrize(("changes", "rule", "message"), CLUSTERS, ids=[f"{case[1]}" for case in CLUSTERS])
def test_a_cluster_that_is_refused(tmp_path: Path, changes: dict[str, Any], rule: str, message: str) -> None:
    """By that rule, and before any control plane is started."""
    cloud = with_cluster(tmp_path)
    cloud.delete(CLUSTER_ID)
    with pytest.raises(RefusedError) as refused:
        cloud.create(CLUSTER, base("train-cluster", **changes))

    broken = next(candidate for candidate in CLUSTER_RULES if candidate.name == rule)
    assert str(refused.value) == broken.refusal(cloud.request(CLUSTER, base("train-cluster", **changes)))
    assert message in str(refused.value)
    assert cloud.clusters.running == {}


def test_a_subnetwork_of_another_network(tmp_path: Path) -> None:
    """hashicorp/terraform-provider-google#7895."""
    cloud = with_cluster(tmp_path)
    cloud.create(NETWORK, {"name": "lab", "autoCreateSubnetworks": False})
    with pytest.raises(RefusedError, match=f'Subnetwork "{SUBNET}" is not valid for Network "lab"'):
        cloud.create(CLUSTER, base("train-cluster", name="other", network="lab"))


def test_every_cluster_rule_is_tried() -> None:
    """Every rule has a case that breaks it."""
    assert {case[1] for case in CLUSTERS} == {rule.name for rule in CLUSTER_RULES}


ACCOUNT_ID = f"projects/acme-ml/serviceAccounts/{EMAIL}"
OTHERS: list[tuple[str, dict[str, Any], str]] = [
    (
        NETWORK,
        {"name": "train"},
        f"Error creating Network: googleapi: Error 409: The resource '{VPC}' already",
    ),
    (
        SUBNETWORK,
        {"name": "a", "network": "nobody", "ipCidrRange": "10.128.0.0/20"},
        "Error 404: The resource 'projects/acme-ml/global/networks/nobody' was not found, notFound",
    ),
    # tranquilitybase-io/tb-gcp#160
    (
        SUBNETWORK,
        {"name": "a", "network": VPC, "ipCidrRange": "10.0.8.0/24"},
        "Invalid IPCidrRange: 10.0.8.0/24 conflicts with existing subnetwork 'train' in region 'us-central1'",
    ),
    (
        SUBNETWORK,
        {
            "name": "a",
            "network": VPC,
            "ipCidrRange": "10.128.0.0/20",
            "secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.128.0.0/16"}],
        },
        "'resource.secondaryIpRanges[0].ipCidrRange': '10.128.0.0/16'",
    ),
    (
        SUBNETWORK,
        {"name": "a", "network": VPC, "ipCidrRange": "10.128.0.1/20"},
        "Range must be in CIDR format",
    ),
    (SUBNETWORK, {"name": "a", "network": VPC, "ipCidrRange": "10.128.0.0/30"}, "at most 29"),
    (ROUTER, {"name": "a", "network": "nobody"}, "networks/nobody' was not found"),
    (
        ROUTER_NAT,
        {"name": "nat", "router": "nobody", "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS"},
        "routers/nobody' was not found",
    ),
    (
        ROUTER_NAT,
        {"name": "nat", "router": "train", "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS"},
        "At least one subnetwork must be specified",
    ),
    (
        ROUTER_NAT,
        {
            "name": "nat",
            "router": "train",
            "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
            "subnetworks": [{"name": "nobody", "sourceIpRangesToNats": ["ALL_IP_RANGES"]}],
        },
        "subnetworks/nobody' was not found",
    ),
    (
        ACCOUNT,
        {"accountId": "train-nodes"},
        "Error 409: Service account train-nodes already exists within project projects/acme-ml., already",
    ),
    (
        ACCOUNT_MEMBER,
        {"serviceAccountId": ACCOUNT_ID, "role": "roles/viewer", "member": "user:a@b.example"},
        f"Error 404: Unknown service account {EMAIL}, notFound",
    ),
    (
        PROJECT_MEMBER,
        {"project": "acme-ml", "role": "viewer", "member": "user:a@b.example"},
        "Error 400: Role viewer is not supported for this resource.",
    ),
    (
        BUCKET_MEMBER,
        {"bucket": "nobody", "role": "roles/storage.objectUser", "member": "user:a@b.example"},
        "Error 404: The specified bucket does not exist.",
    ),
    (BUCKET, {"name": "Lab", "location": "us-central1"}, "Invalid bucket name: 'Lab'"),
    (BUCKET, {"name": "goog-lab", "location": "us-central1"}, "Invalid bucket name"),
    (BUCKET, {"name": "lab", "location": "US", "labels": {"a": "B"}}, "Invalid label value 'B' of 'a'"),
    (
        FILESTORE,
        {
            "name": "a",
            "location": "us-central1-a",
            "tier": "BASIC_HDD",
            "fileShares": {"name": "shared", "capacityGb": 512},
            "networks": [{"network": "train", "modes": ["MODE_IPV4"]}],
        },
        "Invalid file share capacity 512 GiB: it must be between 1024 and 65434 GiB for tier BASIC_HDD.",
    ),
    (
        FILESTORE,
        {
            "name": "a",
            "location": "us-central1-a",
            "tier": "SLOW",
            "fileShares": {"name": "shared", "capacityGb": 1024},
            "networks": [{"network": "train", "modes": ["MODE_IPV4"]}],
        },
        "Invalid value at 'instance.tier'",
    ),
    (
        FILESTORE,
        {
            "name": "a",
            "location": "us-central1-a",
            "tier": "BASIC_HDD",
            "fileShares": {"name": "Shared", "capacityGb": 1024},
            "networks": [{"network": "nobody", "modes": ["MODE_IPV4"]}],
        },
        "Invalid file share name 'Shared'",
    ),
]


@pytest.mark.parametrize(("kind", "inputs", "message"), OTHERS, ids=[case[2][:50] for case in OTHERS])
def test_a_resource_that_is_refused(tmp_path: Path, kind: str, inputs: dict[str, Any], message: str) -> None:
    """Beside a whole cluster of the program's; nothing is left of it."""
    cloud = Cloud(tmp_path)
    for resource, properties in asked_for(GKE):
        cloud.create(resource.type, properties, resource.name)
    before = cloud.store.resources()
    with pytest.raises(RefusedError) as refused:
        cloud.create(kind, inputs)
    assert message in str(refused.value)
    assert cloud.store.resources() == before


def test_identities_come_with_the_first_cluster(tmp_path: Path) -> None:
    """terraform-google-modules/terraform-google-kubernetes-engine#916: a pod's identity can be bound only
    once the project has a cluster with Workload Identity."""
    cloud = Cloud(tmp_path)
    account = cloud.create(ACCOUNT, {"accountId": "team-vision"})
    bound = {
        "serviceAccountId": account.id,
        "role": "roles/iam.workloadIdentityUser",
        "member": "serviceAccount:acme-ml.svc.id.goog[vision/work]",
    }
    with pytest.raises(RefusedError, match=r"Identity Pool does not exist \(acme-ml\.svc\.id\.goog\)"):
        cloud.create(ACCOUNT_MEMBER, bound)

    cloud.create(NETWORK, base("train-network-vpc"))
    cloud.create(SUBNETWORK, base("train-network-subnet"))
    cloud.create(CLUSTER, base("train-cluster"))
    assert cloud.create(ACCOUNT_MEMBER, bound).id.startswith(account.id)


def test_a_gateway_has_two_letters_or_more(tmp_path: Path) -> None:
    """A router may be called by one, its NAT gateway may not."""
    _, failures = Cloud(tmp_path).check(ROUTER_NAT, base("train-network-nat", name="x"))
    assert [failure.property for failure in failures] == ["name"]


def test_an_account_of_a_domains_project(tmp_path: Path) -> None:
    """The service account's address of a domain-scoped project has the project before the domain."""
    account = Cloud(tmp_path, "acme.example:ml").create(ACCOUNT, {"accountId": "train-nodes"})
    assert account.state["email"] == "train-nodes@ml.acme.example.iam.gserviceaccount.com"
