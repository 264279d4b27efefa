"""Edits by hand and a month of the clouds' own changes, read by the real engine from the fake clouds."""

import copy
import random
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from ebbtide.analysis.changes.property_path import merged
from ebbtide.analysis.drift.differences import differences_of
from ebbtide.analysis.drift.drift_document import Drift
from ebbtide.analysis.preview.stack_files import StackFiles, read_stack
from ebbtide.autoscaler.nodes import Machine
from ebbtide.operations import drift
from ebbtide.operations.engine import stack as stacks
from ebbtide_rehearsal.cloud.pools import drop, machines, put
from ebbtide_rehearsal.cloud.store import Resource, Store
from rehearsal.tests.engine.edits import Edit, EditedObjects, edit_resource
from rehearsal.tests.engine.running import Stack, running_on
from rehearsal.tests.unit.rest_clouds import rest_clouds
from tests.contract.cluster_flips import MAINTENANCE
from tests.declarations import BASES, Declaration
from tests.repository import ROOT

pytestmark = [pytest.mark.engine, pytest.mark.first]

_SPEC: Final[Declaration] = {
    "queues": [{"name": "cpu", "pools": ["cpu"]}],
    "teams": [
        {"name": "vision", "bucket": {}, "queues": [{"queue": "cpu"}], "members": ["ann@example.com"]},
    ],
}
_TEAM: Final = "train-addons-team-vision"
_QUEUES: Final = "train-addons-queues"


_HAND: Final = {"key": "hand", "value": "a", "effect": "NO_SCHEDULE"}
_EDITS: Final[Mapping[str, Mapping[tuple[str, str], Edit]]] = {
    "gke": {
        ("nodePools/cpu", "train-cpu"): {
            "nodeConfig.taints[1]": _HAND,
            "nodeConfig.tags": ["open"],
            "nodeConfig.machineType": "n2-standard-16",
            "nodeConfig.diskSizeGb": 500,
            "nodeConfig.imageType": "UBUNTU_CONTAINERD",
            "nodeConfig.labels.hand": "x",
            "nodeConfig.resourceLabels.ebbtide-owner": "them",
            "autoscaling.totalMaxNodeCount": 99,
            "management.autoUpgrade": False,
            "nodeLocations[0]": "us-central1-b",
        },
        ("nodePools/t4", "train-t4"): {"autoscaling": None},
        ("nodePools/a100", "train-a100"): None,
        ("clusters/train", "train-cluster"): {
            "masterAuthorizedNetworksConfig.cidrBlocks[1]": {"cidrBlock": "0.0.0.0/0"},
            "releaseChannel.channel": "RAPID",
            "maintenancePolicy": None,
            "resourceLabels.hand": "x",
            "addonsConfig.httpLoadBalancing": {"disabled": True},
            "enableShieldedNodes": False,
        },
        ("subnetworks/train", "train-network-subnet"): {"privateIpGoogleAccess": False},
        ("us-central1/train/train", "train-network-nat"): {"logConfig.enable": False},
        (
            "artifactregistry.reader/serviceAccount:train-nodes@acme-ml.iam.gserviceaccount.com",
            "train-identity-artifactregistry.reader",
        ): None,
        (
            "serviceAccounts/train-team-vision@acme-ml.iam.gserviceaccount.com",
            "train-team-vision-account",
        ): {"displayName": "theirs"},
    },
    "aks": {
        ("agentPools/cpu", "train-cpu"): {
            "nodeTaints[1]": "hand=a:NoSchedule",
            "maxCount": 99,
            "nodeLabels.hand": "x",
            "tags.ebbtide-owner": "them",
            "upgradeSettings": {"maxSurge": "50%"},
            "powerState.code": "Stopped",
        },
        ("agentPools/steady", "train-steady"): {"enableAutoScaling": False},
        ("agentPools/t4", "train-t4"): None,
        ("agentPools/system", "train-cluster"): {"agentPoolProfiles[0].maxCount": 50},
        ("managedClusters/train", "train-cluster"): {
            "apiServerAccessProfile.authorizedIPRanges[1]": "0.0.0.0/0",
            "autoUpgradeProfile.upgradeChannel": "rapid",
            "tags.hand": "x",
            "sku.tier": "Premium",
        },
        (
            "aksManagedAutoUpgradeSchedule",
            "train-maintenance-aksManagedAutoUpgradeSchedule",
        ): {"maintenanceWindow.durationHours": 4},
        ("subnets/nodes", "train-network-subnet"): {"defaultOutboundAccess": True},
        ("virtualNetworks/train", "train-network-vnet"): {"tags.hand": "x"},
    },
}
"""Edits by the end of an id in the cloud and the logical name: each path is one of a difference."""
_OBJECTS: Final[Mapping[str, Edit]] = {
    f"{_QUEUES}-clusterqueue-vision.cpu": {"spec.stopPolicy": "Hold", "spec.fairSharing.weight": "9"},
    f"{_QUEUES}-cohort-train": {"spec.resourceGroups[0].flavors[0].resources[0].nominalQuota": "7"},
    f"{_QUEUES}-localqueue-vision/cpu": None,
    f"{_QUEUES}-resourceflavor-cpu": {"spec.nodeLabels.hand": "x"},
    f"{_TEAM}-namespace-vision": {
        'metadata.labels["pod-security.kubernetes.io/enforce"]': "privileged",
        "metadata.labels.hand": "x",
    },
    f"{_TEAM}-role-member": {"rules[10]": {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}},
    f"{_TEAM}-configmap-ebbtide-profile": {'data["profile.json"]': "{}"},
    f"{_TEAM}-resourcequota-objects": {"spec.hard.pods": "9k"},
    f"{_TEAM}-networkpolicy-own-namespace": None,
    f"{_TEAM}-limitrange-one-node": None,
    "train-addons-controllers": {"description": "theirs"},
    "train-addons-validatingadmissionpolicy-members": {"spec.failurePolicy": "Ignore"},
    "train-addons-validatingadmissionpolicybinding-members": {"spec.validationActions[0]": "Warn"},
    "train-addons-validatingadmissionpolicybinding-profile": None,
    f"{_TEAM}-resourcequota-nothing-left-behind": None,
    f"{_TEAM}-rolebinding-members": {"subjects[1]": {"kind": "User", "name": "eve"}},
    f"{_TEAM}-serviceaccount-worker": {"automountServiceAccountToken": True},
    f"{_QUEUES}-workloadpriorityclass-ebbtide-low": {"description": "theirs"},
    f"{_QUEUES}-workloadpriorityclass-ebbtide-normal": None,
    f"{_QUEUES}-validatingadmissionpolicy-ebbtide-queue-required": {"spec.failurePolicy": "Ignore"},
    f"{_QUEUES}-validatingadmissionpolicybinding-ebbtide-queue-required": None,
}
"""Edits of Kubernetes objects by logical name."""
_LEAST: Final = 40
"""Edits on each cloud, with a pool and a grant that are created."""


@dataclass(frozen=True, slots=True)
class _Deployed:
    """A deployed stack on a fake cloud."""

    stack: Stack
    store: Store
    objects: EditedObjects
    files: StackFiles

    @property
    def opened(self) -> stacks.Stack:
        """The stack, as of the commands."""
        return stacks.Stack("test", self.stack.automation, None)

    def inspect(self) -> Drift:
        """Its drift; reading it does not change the state."""
        state = self.stack.state()
        found = drift.inspect(self.opened, self.files)
        assert self.stack.state() == state
        return found

    def makers(self) -> Counter[str]:
        """The number of differences by maker; nothing is deleted."""
        read = drift.read(self.opened)
        assert not [resource.urn for resource in read if resource.is_deleted]
        return Counter(item.maker for resource in read for item in differences_of(resource))

    def overwritten(self) -> list[str]:
        """Return the warnings of an update of two pools."""
        changed = {(item["type"], f"train-{pool}") for item in self.stack.state() for pool in ("cpu", "t4")}
        deployment = {"resources": self.stack.state()}
        return list(drift.overwritten(self.opened, deployment, changed, ()))


@contextmanager
def _deployed(cloud: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[_Deployed]:
    objects = EditedObjects()
    declared: Declaration = copy.deepcopy(BASES[cloud]) | _SPEC | {"lifetime": {"hours": 8}}
    declared["cloud"] |= {"access": {"networks": ["203.0.113.0/24"]}, "maintenance": MAINTENANCE}
    with (
        running_on(cloud, directory, objects) as (stack, store, _),
        rest_clouds(directory, monkeypatch, store=store),
    ):
        stack.declare(declared)
        stack.up()
        files = replace(read_stack(ROOT, "dev").declaring(declared), stack="test")
        yield _Deployed(stack, store, objects, files)


def _a_day(deployed: _Deployed, day: int) -> None:
    """Scale and reclaim nodes, repair and upgrade, and let controllers write to their objects."""
    store, chance = deployed.store, random.Random(day)  # noqa: S311 - no secret
    version = f"1.36.{2 + day // 10}"
    for resource in store.resources():
        if resource.type == "gcp:container/nodePool:NodePool":
            _resized(store, resource, chance.randint(0, 3), day)
            config = {"labels": {"cloud.google.com/gke-spot": "true"}, "effectiveTaints": [_HAND]}
            change = {"version": f"{version}-gke.{day}", "nodeConfig": config}
        elif resource.type == "azure-native:containerservice:AgentPool":
            change = {
                "count": chance.randint(0, 3),
                "orchestratorVersion": version,
                "currentOrchestratorVersion": version,
                "nodeImageVersion": f"AKSUbuntu-2404gen2containerd-2026.12.{day:02}",
            }
        elif resource.type == "gcp:container/cluster:Cluster":
            change = {
                "masterVersion": f"{version}-gke.{day}",
                "nodeVersion": f"{version}-gke.{day}",
                "labelFingerprint": f"{day:08x}",
                "masterAuth": {"clusterCaCertificate": f"rotated {day // 15}"},
            }
        elif resource.type == "azure-native:containerservice:ManagedCluster":
            change = {"currentKubernetesVersion": version, "kubernetesVersion": version}
        elif resource.type.endswith("IAMMember"):
            change = {"etag": f"Bw{day}"}
        else:
            continue
        current = store.get(resource.cloud, resource.id)
        assert current is not None
        store.put(current.having(**merged(current.state, change)))
    for name, (manager, edit) in _CONTROLLERS.items():
        deployed.objects.edits[name] = (manager, edit(day))


def _resized(store: Store, pool: Resource, count: int, day: int) -> None:
    """Replace a pool's machines, as after repairs, reclaims and scaling."""
    cluster, _, name = pool.id.rpartition("/nodePools/")
    for machine in machines(store, cluster):
        if machine.pool == name:
            drop(store, machine)
    for number in range(count):
        new = f"{name}-{day}-{number}"
        put(store, Machine(cluster, name, new, "us-central1-a", "gke", 0.1, 0, "running", 0))


_CONTROLLERS: Final[Mapping[str, tuple[str, Callable[[int], Edit]]]] = {
    f"{_QUEUES}-clusterqueue-vision.cpu": (
        "kueue",
        lambda day: {
            "metadata.finalizers": ["kueue.x-k8s.io/resource-in-use"],
            "metadata.generation": day,
            "status.pendingWorkloads": day,
        },
    ),
    f"{_QUEUES}-localqueue-vision/cpu": ("manager", lambda day: {"status.pendingWorkloads": day}),
    f"{_TEAM}-namespace-vision": ("kube-controller-manager", lambda _: {"status.phase": "Active"}),
    f"{_TEAM}-resourcequota-objects": (
        "kube-controller-manager",
        lambda day: {"status.used.pods": str(day), "metadata.annotations.seen": str(day)},
    ),
}
"""Field managers of controllers and what they write, by day."""


@pytest.mark.parametrize("cloud", ["gke", pytest.param("aks", marks=pytest.mark.long)])
def test_a_month_of_the_clouds_changes_and_edits_by_hand(
    cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes by autoscalers, clouds and controllers in 30 days are not drift; each edit is a person's, with
    its action in an update, and nothing else is."""
    with _deployed(cloud, tmp_path, monkeypatch) as deployed:
        assert deployed.makers().keys() <= {"autoscaler"}
        for day in range(1, 31):
            _a_day(deployed, day)
            if day % 10 == 0:
                assert deployed.makers().keys() == {"autoscaler", "cloud", "controller"}

        for (resource, _), edit in _EDITS[cloud].items():
            edit_resource(deployed.store, resource, _of_pool(edit))
        deployed.objects.edits = {name: ("kubectl-edit", edit) for name, edit in _OBJECTS.items()}
        _add_pool(deployed.store)
        _add_grant(deployed.store)
        found = deployed.inspect()
        identity = "train-identity-account" if cloud == "gke" else "train-identity"
        assert [(item.kind, item.name) for item in found.unowned] == [
            ("node pool", "theirs"),
            ("grant", identity),
        ]
        assert [text.partition(":")[0] for text in found.unread] == [
            "The cluster is unreachable, and queues and rights that no state has are unknown"
        ]
        edits = [*((name, edit) for (_, name), edit in _EDITS[cloud].items()), *_OBJECTS.items()]
        gone = {name for name, edit in edits if edit is None}
        changes = {(name, path) for name, edit in edits if edit for path in edit}
        assert len(gone) + len(changes) + 2 >= _LEAST
        assert {(item.name, field.path) for item in found.of_person for field in item.of_person} == changes
        assert {item.name for item in found.resources if item.deleted} == gone
        assert {item.name: item.action for item in found.of_person} == {
            **{name: "update" for name, _ in changes},
            **dict.fromkeys(gone, "create"),
        }
        _check_warnings(cloud, deployed.overwritten())


def _of_pool(edit: Edit) -> Edit:
    """Return an edit of a pool that the cluster lists, as one of the pool itself."""
    return edit and {path.removeprefix("agentPoolProfiles[0]."): value for path, value in edit.items()}


def _add_pool(store: Store) -> None:
    """Create a second pool by hand, like the pool `cpu`."""
    (cpu,) = [item for item in store.resources() if item.id.endswith(("nodePools/cpu", "agentPools/cpu"))]
    identity = cpu.id.removesuffix("cpu") + "theirs"
    store.put(replace(cpu.having(name="theirs"), id=identity, urn=""))


def _add_grant(store: Store) -> None:
    """Give the identity of the nodes, or of the control plane, another role by hand."""
    (grant,) = [
        item
        for item in store.resources()
        if item.urn.endswith(
            ("::train-identity-container.defaultNodeServiceAccount", "::train-identity-subnet")
        )
    ]
    identity, role = f"{grant.id}-theirs", "roles/editor"
    store.put(replace(grant.having(role=role, roleDefinitionId=role), id=identity, urn=""))


def _check_warnings(cloud: str, warnings: list[str]) -> None:
    cpu = next(
        text for text in warnings if text.startswith("Pool cpu was changed by hand, which this update")
    )
    assert "more. See `" in cpu
    (t4,) = [text for text in warnings if text.startswith("Pool t4 was ")]
    assert ("changed by hand" if cloud == "gke" else "deleted by hand, and the update of it fails") in t4
    assert len(warnings) == 2
