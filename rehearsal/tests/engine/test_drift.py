"""Edits by hand and a month of the clouds' own changes, read by the real engine from the fake clouds."""

import copy
import random
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from ebbtide.analysis.changes.property_path import merged
from ebbtide.analysis.drift.differences import differences_of
from ebbtide.analysis.drift.report import Action, Drift
from ebbtide.analysis.preview.stack_files import StackFiles, read_stack
from ebbtide.autoscaler.nodes import Machine
from ebbtide.operations import drift
from ebbtide.operations.engine import stack as stacks
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.fake_provider import FakeProvider
from ebbtide_rehearsal.cloud.ids import PACKAGES
from ebbtide_rehearsal.cloud.pools import drop, machines, put
from ebbtide_rehearsal.cloud.store import Resource, Store
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.edits import GONE, Edit, EditedObjects, edit_resource
from rehearsal.tests.engine.running import Stack, running
from rehearsal.tests.unit.rest_clouds import rest_clouds
from tests.contract.cloud_flips import MAINTENANCE
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


@dataclass(frozen=True, slots=True)
class _Edited:
    """An edit by hand, and the differences that it makes.

    Attributes:
        resource: end of the id in the cloud, or logical name of a Kubernetes object.
        name: logical name of the resource in the stack.
        edit: the edit.
        paths: paths of the differences; none for a deleted resource.
        action: what an update does to it once the state is refreshed; None if it is not compared.
    """

    resource: str
    name: str
    edit: Edit
    paths: tuple[str, ...] = ()
    action: Action | None = None


def _pool_of(**change: Any) -> Mapping[str, Any]:
    return {"nodeConfig": change}


def _with(name: str, item: Any) -> Edit:
    """Append an item to a list of a node pool's configuration on GKE."""
    return lambda state: _pool_of(**{name: [*state["nodeConfig"].get(name, ()), item]})


_HAND: Final = {"key": "hand", "value": "a", "effect": "NO_SCHEDULE"}
_GKE: Final = (
    _Edited("nodePools/cpu", "train-cpu", _with("taints", _HAND), ("nodeConfig.taints[1]",)),
    _Edited("nodePools/cpu", "train-cpu", _with("tags", "open"), ("nodeConfig.tags",)),
    _Edited(
        "nodePools/cpu", "train-cpu", _pool_of(machineType="n2-standard-16"), ("nodeConfig.machineType",)
    ),
    _Edited("nodePools/cpu", "train-cpu", _pool_of(diskSizeGb=500), ("nodeConfig.diskSizeGb",)),
    _Edited("nodePools/cpu", "train-cpu", _pool_of(imageType="UBUNTU_CONTAINERD"), ("nodeConfig.imageType",)),
    _Edited("nodePools/cpu", "train-cpu", _pool_of(labels={"hand": "x"}), ("nodeConfig.labels.hand",)),
    _Edited(
        "nodePools/cpu",
        "train-cpu",
        _pool_of(resourceLabels={"ebbtide-owner": "them"}),
        ("nodeConfig.resourceLabels.ebbtide-owner",),
    ),
    _Edited(
        "nodePools/cpu",
        "train-cpu",
        {"autoscaling": {"totalMaxNodeCount": 99}},
        ("autoscaling.totalMaxNodeCount",),
    ),
    _Edited(
        "nodePools/cpu", "train-cpu", {"management": {"autoUpgrade": False}}, ("management.autoUpgrade",)
    ),
    _Edited("nodePools/cpu", "train-cpu", {"nodeLocations": ["us-central1-b"]}, ("nodeLocations[0]",)),
    _Edited("nodePools/t4", "train-t4", {"autoscaling": None}, ("autoscaling",), "update"),
    _Edited("nodePools/a100", "train-a100", GONE, (), "create"),
    _Edited(
        "clusters/train",
        "train-cluster",
        lambda state: {
            "masterAuthorizedNetworksConfig": {
                "cidrBlocks": [
                    *state["masterAuthorizedNetworksConfig"]["cidrBlocks"],
                    {"cidrBlock": "0.0.0.0/0"},
                ]
            }
        },
        ("masterAuthorizedNetworksConfig.cidrBlocks[1]",),
    ),
    _Edited(
        "clusters/train",
        "train-cluster",
        {"releaseChannel": {"channel": "RAPID"}},
        ("releaseChannel.channel",),
    ),
    _Edited("clusters/train", "train-cluster", {"maintenancePolicy": None}, ("maintenancePolicy",)),
    _Edited("clusters/train", "train-cluster", {"resourceLabels": {"hand": "x"}}, ("resourceLabels.hand",)),
    _Edited(
        "clusters/train",
        "train-cluster",
        {"addonsConfig": {"httpLoadBalancing": {"disabled": True}}},
        ("addonsConfig.httpLoadBalancing",),
    ),
    _Edited("clusters/train", "train-cluster", {"enableShieldedNodes": False}, ("enableShieldedNodes",)),
    _Edited(
        "subnetworks/train",
        "train-network-subnet",
        {"privateIpGoogleAccess": False},
        ("privateIpGoogleAccess",),
    ),
    _Edited(
        "us-central1/train/train",
        "train-network-nat",
        {"logConfig": {"enable": False}},
        ("logConfig.enable",),
    ),
    _Edited(
        "artifactregistry.reader/serviceAccount:train-nodes@acme-ml.iam.gserviceaccount.com",
        "train-identity-artifactregistry.reader",
        GONE,
        (),
        "create",
    ),
    _Edited(
        "serviceAccounts/train-team-vision@acme-ml.iam.gserviceaccount.com",
        "train-team-vision-account",
        {"displayName": "theirs"},
        ("displayName",),
    ),
)
_AKS: Final = (
    _Edited(
        "agentPools/cpu",
        "train-cpu",
        lambda state: {"nodeTaints": [*state["nodeTaints"], "hand=a:NoSchedule"]},
        ("nodeTaints[1]",),
    ),
    _Edited("agentPools/cpu", "train-cpu", {"maxCount": 99}, ("maxCount",)),
    _Edited("agentPools/cpu", "train-cpu", {"nodeLabels": {"hand": "x"}}, ("nodeLabels.hand",)),
    _Edited("agentPools/cpu", "train-cpu", {"tags": {"ebbtide-owner": "them"}}, ("tags.ebbtide-owner",)),
    _Edited("agentPools/cpu", "train-cpu", {"upgradeSettings": {"maxSurge": "50%"}}, ("upgradeSettings",)),
    _Edited("agentPools/cpu", "train-cpu", {"powerState": {"code": "Stopped"}}, ("powerState.code",)),
    _Edited(
        "agentPools/steady", "train-steady", {"enableAutoScaling": False}, ("enableAutoScaling",), "update"
    ),
    _Edited("agentPools/t4", "train-t4", GONE, (), "create"),
    _Edited("agentPools/system", "train-cluster", {"maxCount": 50}, ("agentPoolProfiles[0].maxCount",)),
    _Edited(
        "managedClusters/train",
        "train-cluster",
        {"apiServerAccessProfile": {"authorizedIPRanges": ["203.0.113.0/24", "0.0.0.0/0"]}},
        ("apiServerAccessProfile.authorizedIPRanges[1]",),
    ),
    _Edited(
        "managedClusters/train",
        "train-cluster",
        {"autoUpgradeProfile": {"upgradeChannel": "rapid"}},
        ("autoUpgradeProfile.upgradeChannel",),
    ),
    _Edited("managedClusters/train", "train-cluster", {"tags": {"hand": "x"}}, ("tags.hand",)),
    _Edited("managedClusters/train", "train-cluster", {"sku": {"tier": "Premium"}}, ("sku.tier",)),
    _Edited(
        "aksManagedAutoUpgradeSchedule",
        "train-maintenance-aksManagedAutoUpgradeSchedule",
        {"maintenanceWindow": {"durationHours": 4}},
        ("maintenanceWindow.durationHours",),
    ),
    _Edited(
        "subnets/nodes", "train-network-subnet", {"defaultOutboundAccess": True}, ("defaultOutboundAccess",)
    ),
    _Edited("virtualNetworks/train", "train-network-vnet", {"tags": {"hand": "x"}}, ("tags.hand",)),
)
_OBJECTS: Final = (
    _Edited(
        f"{_QUEUES}-clusterqueue-vision.cpu",
        f"{_QUEUES}-clusterqueue-vision.cpu",
        {"spec": {"stopPolicy": "Hold", "fairSharing": {"weight": "9"}}},
        ("spec.stopPolicy", "spec.fairSharing.weight"),
        "update",
    ),
    _Edited(
        f"{_QUEUES}-cohort-train",
        f"{_QUEUES}-cohort-train",
        lambda state: {"spec": {"resourceGroups": _quota(state["spec"]["resourceGroups"])}},
        ("spec.resourceGroups[0].flavors[0].resources[0].nominalQuota",),
        "update",
    ),
    _Edited(f"{_QUEUES}-localqueue-vision/cpu", f"{_QUEUES}-localqueue-vision/cpu", GONE, (), "create"),
    _Edited(
        f"{_QUEUES}-resourceflavor-cpu",
        f"{_QUEUES}-resourceflavor-cpu",
        {"spec": {"nodeLabels": {"hand": "x"}}},
        ("spec.nodeLabels.hand",),
    ),
    _Edited(
        f"{_TEAM}-namespace-vision",
        f"{_TEAM}-namespace-vision",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged", "hand": "x"}}},
        ('metadata.labels["pod-security.kubernetes.io/enforce"]', "metadata.labels.hand"),
    ),
    _Edited(
        f"{_TEAM}-role-member",
        f"{_TEAM}-role-member",
        lambda state: {"rules": [*state["rules"], {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
        ("rules[10]",),
    ),
    _Edited(
        f"{_TEAM}-configmap-ebbtide-profile",
        f"{_TEAM}-configmap-ebbtide-profile",
        {"data": {"profile.json": "{}"}},
        ('data["profile.json"]',),
    ),
    _Edited(
        f"{_TEAM}-resourcequota-objects",
        f"{_TEAM}-resourcequota-objects",
        {"spec": {"hard": {"pods": "9k"}}},
        ("spec.hard.pods",),
        "update",
    ),
    _Edited(
        f"{_TEAM}-networkpolicy-own-namespace", f"{_TEAM}-networkpolicy-own-namespace", GONE, (), "create"
    ),
    _Edited(f"{_TEAM}-limitrange-one-node", f"{_TEAM}-limitrange-one-node", GONE, (), "create"),
    _Edited(
        "train-addons-controllers", "train-addons-controllers", {"description": "theirs"}, ("description",)
    ),
    _Edited(
        "train-addons-validatingadmissionpolicy-members",
        "train-addons-validatingadmissionpolicy-members",
        {"spec": {"failurePolicy": "Ignore"}},
        ("spec.failurePolicy",),
    ),
    _Edited(
        "train-addons-validatingadmissionpolicybinding-members",
        "train-addons-validatingadmissionpolicybinding-members",
        {"spec": {"validationActions": ["Warn"]}},
        ("spec.validationActions[0]",),
    ),
    _Edited(
        "train-addons-validatingadmissionpolicybinding-profile",
        "train-addons-validatingadmissionpolicybinding-profile",
        GONE,
        (),
        "create",
    ),
    _Edited(
        "train-addons-team-vision-resourcequota-nothing-left-behind",
        "train-addons-team-vision-resourcequota-nothing-left-behind",
        GONE,
        (),
        "create",
    ),
    _Edited(
        "train-addons-team-vision-rolebinding-members",
        "train-addons-team-vision-rolebinding-members",
        lambda state: {"subjects": [*state["subjects"], {"kind": "User", "name": "eve"}]},
        ("subjects[1]",),
    ),
    _Edited(
        "train-addons-team-vision-serviceaccount-worker",
        "train-addons-team-vision-serviceaccount-worker",
        {"automountServiceAccountToken": True},
        ("automountServiceAccountToken",),
    ),
    _Edited(
        "train-addons-queues-workloadpriorityclass-ebbtide-low",
        "train-addons-queues-workloadpriorityclass-ebbtide-low",
        {"description": "theirs"},
        ("description",),
    ),
    _Edited(
        "train-addons-queues-workloadpriorityclass-ebbtide-normal",
        "train-addons-queues-workloadpriorityclass-ebbtide-normal",
        GONE,
        (),
        "create",
    ),
    _Edited(
        "train-addons-queues-workloadpriorityclass-ebbtide-high",
        "train-addons-queues-workloadpriorityclass-ebbtide-high",
        {"description": "theirs"},
        ("description",),
    ),
    _Edited(
        "train-addons-queues-validatingadmissionpolicy-ebbtide-queue-required",
        "train-addons-queues-validatingadmissionpolicy-ebbtide-queue-required",
        {"spec": {"failurePolicy": "Ignore"}},
        ("spec.failurePolicy",),
    ),
    _Edited(
        "train-addons-queues-validatingadmissionpolicybinding-ebbtide-queue-required",
        "train-addons-queues-validatingadmissionpolicybinding-ebbtide-queue-required",
        GONE,
        (),
        "create",
    ),
)
_EDITS: Final = {"gke": _GKE, "aks": _AKS}
_LEAST: Final = 40
"""Edits on each cloud, with a pool and a grant that are created."""


def _quota(groups: Any) -> Any:
    edited = copy.deepcopy(groups)
    edited[0]["flavors"][0]["resources"][0]["nominalQuota"] = "7"
    return edited


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
    store, clusters = Store(directory / "cloud.sqlite"), FakeControlPlanes()
    provider = FakeProvider(PACKAGES[CloudKind(cloud)], store, clusters)
    objects = EditedObjects()
    declared: Declaration = copy.deepcopy(BASES[cloud]) | _SPEC | {"lifetime": {"hours": 8}}
    declared["cloud"] |= {"access": {"networks": ["203.0.113.0/24"]}, "maintenance": MAINTENANCE}
    with (
        rest_clouds(directory, monkeypatch, store=store),
        running(directory / "engine", store, provider, objects) as stack,
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


_CONTROLLERS: Final[Mapping[str, tuple[str, Callable[[int], Mapping[str, Any]]]]] = {
    f"{_QUEUES}-clusterqueue-vision.cpu": (
        "kueue",
        lambda day: {
            "metadata": {"finalizers": ["kueue.x-k8s.io/resource-in-use"], "generation": day},
            "status": {"pendingWorkloads": day},
        },
    ),
    f"{_QUEUES}-localqueue-vision/cpu": ("manager", lambda day: {"status": {"pendingWorkloads": day}}),
    f"{_TEAM}-namespace-vision": ("kube-controller-manager", lambda _: {"status": {"phase": "Active"}}),
    f"{_TEAM}-resourcequota-objects": (
        "kube-controller-manager",
        lambda day: {"status": {"used": {"pods": str(day)}}, "metadata": {"annotations": {"seen": str(day)}}},
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

        edits = (*_EDITS[cloud], *_OBJECTS)
        assert len(edits) + 2 >= _LEAST
        for edited in _EDITS[cloud]:
            edit_resource(deployed.store, edited.resource, edited.edit)
        deployed.objects.edits = {edited.name: ("kubectl-edit", edited.edit) for edited in _OBJECTS}
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
        people = {(item.name, field.path) for item in found.of_person for field in item.of_person}
        assert people == {(edited.name, path) for edited in edits for path in edited.paths}
        deleted = {item.name for item in found.resources if item.deleted}
        assert deleted == {edited.name for edited in edits if edited.edit == GONE}
        actions = {item.name: item.action for item in found.of_person}
        assert actions == {
            name: max(
                (edited.action or "update" for edited in edits if edited.name == name), key=_ORDER.index
            )
            for name in actions
        }
        _check_warnings(cloud, deployed.overwritten())


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


_ORDER: Final = ("update", "create", "replace")
