"""Queueing: quotas and flavors of pools, shared GPUs, TPU slices."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.declaration.model.declare import declare
from ebbtide.placement import ProfileError
from ebbtide.placement.derive import profile
from ebbtide.placement.profile import AcceleratorProfile, Profile
from ebbtide.placement.queueing import covered, flavor, largest_node, quantity, queueing
from ebbtide.work.errors import WorkloadError
from ebbtide.work.jobs import job, job_over_nodes
from tests.declarations import AKS, BASES, GKE, Declaration, changed, declarations, only
from tests.unit.model.cases import many_pools

generated = settings(max_examples=40, deadline=None)


@st.composite
def _standing_in(draw: st.DrawFn, declaration: Declaration) -> list[str]:
    """Pools that can stand in for one another, two or more, or none."""
    cluster = declare(declaration)
    kinds: dict[str, list[str]] = {}
    for pool in cluster.work_pools:
        if pool.capacity.kind not in ("queued", "flex-start"):
            kinds.setdefault("gpus" if pool.has_gpus else "cpus", []).append(pool.name)
    choices = [names for names in kinds.values() if len(names) > 1]
    if not choices or not draw(st.booleans()):
        return []
    return draw(st.lists(st.sampled_from(draw(st.sampled_from(choices))), min_size=2, unique=True))


@st.composite
def queued(draw: st.DrawFn) -> Declaration:
    """A declaration with queues over some of its pools, in any order, one of which may fall back, names of
    flavors, and teams with weights and guarantees."""
    declaration = draw(declarations())
    work = [pool["name"] for pool in declaration["pools"][1:]]
    if not work:
        return declaration
    together = draw(_standing_in(declaration))
    rest = [name for name in work if name not in together]
    names = draw(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=not together, unique=True))
    queues: list[Declaration] = [
        {"name": name, "pools": draw(st.lists(st.sampled_from(rest), min_size=1, unique=True))}
        for name in (names if rest else ())
    ]
    if together:
        queues.append({"name": "f", "pools": together, "fallback": True})
    declaration["queues"] = queues
    used = {pool for queue in queues if queue["name"] != "f" for pool in queue["pools"]}
    for pool in declaration["pools"]:
        if pool["name"] in used and draw(st.booleans()):
            pool["resourceFlavor"] = f"{pool['name']}.nodes"
    names = [queue["name"] for queue in queues]
    most = {pool["name"]: pool["nodes"]["max"] for pool in declaration["pools"][1:]}
    teams: list[Declaration] = []
    for team in draw(st.lists(st.sampled_from(["x", "y", "z"]), unique=True)):
        uses = draw(st.lists(st.sampled_from(names), unique=True))
        reach = [
            pool
            for queue in declaration["queues"]
            if not uses or queue["name"] in uses
            for pool in queue["pools"]
        ]
        guarantee: dict[str, int] = {}
        for pool in draw(st.lists(st.sampled_from(reach), unique=True)):
            guarantee[pool] = draw(st.integers(0, most[pool]))
            most[pool] -= guarantee[pool]
        teams.append(
            {
                "name": team,
                "queues": uses,
                "guarantee": guarantee,
                "weight": draw(st.integers(1, 9)),
                "borrowingLimit": {pool: 1 for pool in reach if draw(st.booleans())},
                "lendingLimit": {
                    pool: draw(st.integers(0, nodes))
                    for pool, nodes in guarantee.items()
                    if draw(st.booleans())
                },
            }
        )
    preemption = {
        "withinClusterQueue": draw(st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])),
        "reclaimWithinCohort": draw(st.sampled_from(["Never", "LowerPriority", "Any"])),
    }
    strategy = draw(st.sampled_from(["BestEffortFIFO", "StrictFIFO"]))
    cohort = draw(st.sampled_from([{}, {"preemption": preemption, "queueingStrategy": strategy}]))
    return {**declaration, "teams": teams, "cohort": cohort}


@generated
@given(queued())
def test_the_quota_of_any_declaration(declaration: Declaration) -> None:
    """Each flavor is in one cohort, queues own their teams' guarantees alone and keep their order, and only
    queued flavors wait for a check."""
    cluster = declare(declaration)
    admission = queueing(cluster)
    cohorts = [item.name for cohort in admission.cohorts for item, _ in cohort.owned]
    assert sorted(cohorts) == sorted(item.name for item in admission.flavors)
    order = {queue["name"]: queue["pools"] for queue in declaration.get("queues", ())}
    queued_pools = {item.name for item in admission.flavors if item.queued}
    owned: dict[tuple[str, str], int] = {}
    for queue in admission.cluster_queues:
        for _, nodes in queue.flavors:
            for pool, count in nodes.items():
                for namespace in queue.namespaces:
                    owned[namespace, pool] = owned.get((namespace, pool), 0) + count
        pools = [offer.pool for item, _ in queue.flavors for offer in item.offers]
        assert pools == order.get(queue.name.rpartition(".")[2], pools)
        checked = {name for flavors in queue.checks.values() for name in flavors}
        assert checked == {item.name for item, _ in queue.flavors} & queued_pools
        assert set(queue.checks) <= {check.name for check in admission.checks}
    assert {key: nodes for key, nodes in owned.items() if nodes} == {
        (team.namespace_name, pool): nodes
        for team in cluster.tenants
        for pool, nodes in team.guarantee.items()
        if nodes
    }
    assert {
        (queue.namespace, queue.name) for named in profile(cluster).queues for queue in named.local_queues
    } == {(queue.namespace, queue.name) for queue in admission.local_queues}


@pytest.mark.parametrize(
    ("cloud", "key"),
    [("gke", "cloud.google.com/gke-nodepool"), ("aks", "kubernetes.azure.com/agentpool")],
)
def test_a_flavor_carries_the_clouds_label_of_its_pool(cloud: str, key: str) -> None:
    """Kueue ignores a pod's selector on a key that the flavor lacks, and would admit it to any pool."""
    cluster = declare(BASES[cloud])
    for pool in cluster.work_pools:
        assert flavor(pool).labels[key] == pool.name


def test_a_flavor_of_a_compute_class_selects_the_class_alone() -> None:
    """GKE refuses pods that select a ComputeClass and other properties of nodes as well."""
    labels = {"cloud.google.com/compute-class": "batch"}
    work = [{"name": "work", "machine": "n2-standard-8", "nodes": {"max": 1}, "labels": labels}]
    cluster = declare(changed(GKE, pools=[GKE["pools"][0], *work]))
    (pool,) = cluster.work_pools
    assert flavor(pool).labels == {"ebbtide.dev/pool": "work", **labels}


@pytest.mark.parametrize("cloud", BASES)
def test_a_node_offers_what_is_left(cloud: str) -> None:
    """Neither what kubelet and system keep, nor what DaemonSets request, is given away."""
    cluster = declare(BASES[cloud])
    for pool in cluster.work_pools:
        machine = pool.hardware
        assert machine is not None
        node = flavor(pool).node
        kept = pool.daemon_requests
        assert node["cpu"] == int(machine.allocatable().cpu_m - kept.cpu_m) < machine.vcpus * 1000
        assert node["memory"] == int(machine.allocatable().memory_mib - kept.memory_mib)
        assert node["memory"] < machine.memory_gib * 1024


def test_many_pools_are_owned_by_cohorts_below() -> None:
    """Beyond what one group takes, several cohorts own the flavors and the queue borrows from all of them."""
    work = [{"name": f"p{number}", "machine": "n2-standard-8", "nodes": {"max": 1}} for number in range(100)]
    queues = [
        {"name": "first", "pools": [pool["name"] for pool in work[:60]]},
        {"name": "second", "pools": [pool["name"] for pool in work[40:]]},
    ]
    admission = queueing(declare(changed(GKE, pools=[GKE["pools"][0], *work], queues=queues)))
    top, *below = admission.cohorts
    assert top.owned == ()
    assert {cohort.parent for cohort in below} == {top.name}
    assert [len(cohort.owned) for cohort in below] == [64, 36]
    assert {queue.cohort for queue in admission.cluster_queues} == {top.name}


def test_the_flavors_of_one_group_are_owned_by_one_cohort() -> None:
    """Exactly as many pools as Kueue's definition allows in a group are one queue of one cohort."""
    admission = queueing(declare(many_pools(64)))
    assert [(cohort.parent, len(cohort.owned)) for cohort in admission.cohorts] == [("", 64)]
    assert [len(queue.flavors) for queue in admission.cluster_queues] == [64]


def test_teams_do_not_collide() -> None:
    """Team `a-b` with queue `c` and team `a` with queue `b-c` have queues of their own."""
    queues = [{"name": name, "pools": ["cpu"]} for name in ("c", "b-c")]
    teams = [{"name": "a-b", "queues": ["c"]}, {"name": "a", "queues": ["b-c"]}]
    admission = queueing(declare(changed(GKE, queues=queues, teams=teams)))
    assert [queue.name for queue in admission.cluster_queues] == ["a-b.c", "a.b-c"]


def test_the_pipelines_are_a_tenant() -> None:
    """Steps of pipelines find the queues in their namespace."""
    declaration = changed(GKE, addons={"pipelines": {}}, teams=[{"name": "vision"}])
    declaration["queues"] = [{"name": "gpus", "pools": ["t4"]}]
    admission = queueing(declare(declaration))
    assert [(queue.namespace, queue.cluster_queue) for queue in admission.local_queues] == [
        ("vision", "vision.gpus"),
        ("kubeflow", "kubeflow.gpus"),
    ]


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 0, "0"),
        ("cpu", 1500, "1500m"),
        ("cpu", 4000, "4"),
        ("memory", 1023, "1023Mi"),
        ("memory", 2048, "2Gi"),
        ("memory", 1024 * 1024, "1Ti"),
        ("nvidia.com/gpu", 1024, "1024"),
    ],
)
def test_quantities_are_canonical(resource: str, amount: int, text: str) -> None:
    """An amount is written as the API server gives it back, or every preview would see a change."""
    assert quantity(resource, amount) == text


def test_resources_come_in_one_order() -> None:
    """CPU and memory first, then every accelerator of the group."""
    cluster = declare(GKE)
    flavors: list[Any] = [flavor(pool) for pool in cluster.work_pools]
    assert covered(flavors) == ("cpu", "memory", "nvidia.com/gpu")
    assert covered([]) == ("cpu", "memory")
    assert largest_node([]) == {"cpu": "0", "memory": "0"}


@pytest.mark.parametrize(
    ("base", "machine", "taint"),
    [(GKE, "c4a-standard-8", [("kubernetes.io/arch", "arm64", "NoSchedule")]), (AKS, "Standard_D8ps_v6", [])],
    ids=["gke", "aks"],
)
def test_arm_nodes(base: Declaration, machine: str, taint: list[tuple[str, str, str]]) -> None:
    """Jobs select Arm nodes, tolerate GKE's taint on them, and get an image for them; the flavor has both."""
    described = {"type": machine, "vcpus": 8, "memoryGib": 32}
    cluster = declare(only(base, machine=described, capacity="spot"))
    (pool,) = cluster.work_pools
    made = profile(cluster)
    work = made.pool("work")
    own = flavor(next(item for item in cluster.resolved_pools if item.name == pool.name))
    assert ("kubernetes.io/arch", ("arm64",)) in [(term.key, term.values) for term in work.affinity]
    assert own.labels["kubernetes.io/arch"] == "arm64"
    for taints in (work.taints, own.taints):
        found = [(item.key, item.value, item.effect) for item in taints if item.key == "kubernetes.io/arch"]
        assert found == taint
    tolerated = {(item.key, item.value) for item in own.tolerations}
    assert {(key, value) for key, value, _ in taint} <= tolerated
    assert (made.architecture(pool="work"), made.architecture(pool="system")) == ("arm64", "amd64")


def test_an_image_of_two_architectures() -> None:
    """A queue over Arm and other machines has no single platform for an image with code; a pool has one."""
    pools = [
        GKE["pools"][0],
        {"name": "arm", "machine": "c4a-standard-8", "nodes": {"max": 2}},
        {"name": "x86", "machine": "n2-standard-8", "nodes": {"max": 2}},
    ]
    queues = [{"name": "any", "pools": ["arm", "x86"]}]
    made = profile(declare(changed(GKE, pools=pools, queues=queues)))
    with pytest.raises(ProfileError, match="has pools of amd64 and arm64, and an image with code has one"):
        made.architecture(queue="any")
    assert made.architecture(queue="any", pool="arm") == "arm64"


A100 = "nvidia-tesla-a100"
CASES: list[tuple[dict[str, Any], int, int]] = [
    ({}, 1, 2),
    ({"gpuPartitionSize": "1g.5gb"}, 7, 14),
    ({"gpuSharingConfig": {"maxSharedClientsPerGpu": 8}}, 8, 1),
    ({"gpuSharingConfig": {"gpuSharingStrategy": "mps", "maxSharedClientsPerGpu": 8}}, 8, 1),
    ({"gpuPartitionSize": "2g.10gb", "gpuSharingConfig": {"maxSharedClientsPerGpu": 2}}, 6, 1),
]


def _shared(sharing: dict[str, Any], count: int = 2) -> Declaration:
    return only(
        GKE,
        machine=f"a2-highgpu-{count}g",
        accelerator={"type": A100, "count": count, **sharing},
        nodes={"max": 3},
    )


@pytest.mark.parametrize(("sharing", "shares", "most"), CASES)
def test_a_share_is_requested_like_a_gpu(sharing: dict[str, Any], shares: int, most: int) -> None:
    """The quota is the shares of all nodes; one container may request fewer of them."""
    cluster = declare(_shared(sharing))
    accelerator = profile(cluster).pool("work").accelerator
    assert accelerator == AcceleratorProfile(A100, 2 * shares, "nvidia.com/gpu", shares, most)
    offer = flavor(cluster.resolved_pools[1]).offer({"work": 3})
    assert offer["nvidia.com/gpu"] == 3 * 2 * shares
    assert Profile.load(profile(cluster).data()) == profile(cluster)


_MPS = {"gpuSharingConfig": {"gpuSharingStrategy": "mps", "maxSharedClientsPerGpu": 8}}
_MIG = {"type": "nvidia-a100-80gb", "count": 2, "gpuInstanceProfile": "MIG3g"}


@pytest.mark.parametrize(
    ("declaration", "count"),
    [
        (_shared(_MPS, count=1), 8),
        (only(AKS, machine="Standard_NC48ads_A100_v4", accelerator=_MIG, nodes={"count": 1}), 4),
    ],
    ids=["mps", "mig"],
)
def test_one_container_may_have_every_share(declaration: Declaration, count: int) -> None:
    """MPS gives all of a node's single GPU to a container, and the device plugin's strategy `single` names
    every instance of a GPU `nvidia.com/gpu`."""
    accelerator = profile(declare(declaration)).pool("work").accelerator
    assert accelerator is not None
    assert (accelerator.count, accelerator.most) == (count, count)


def test_nodes_say_how_their_gpus_are_shared() -> None:
    """By labels that GKE adds; the taint stays that of GPUs."""
    sharing = {"gpuPartitionSize": "1g.5gb", "gpuSharingConfig": {"maxSharedClientsPerGpu": 3}}
    pool = profile(declare(_shared(sharing))).pool("work")
    assert {key: value for key, value in pool.labels.items() if "shar" in key or "partition" in key} == {
        "cloud.google.com/gke-gpu-partition-size": "1g.5gb",
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "3",
    }
    assert "nvidia.com/gpu" in {taint.key for taint in pool.taints}


def test_a_job_cannot_request_several_shares() -> None:
    """GKE's device plugin fails the pod; the job is refused before it is submitted."""
    cluster = profile(declare(_shared({"gpuSharingConfig": {"maxSharedClientsPerGpu": 8}})))
    request: dict[str, Any] = {
        "name": "train",
        "image": "train:1",
        "pool": "work",
        "cpu": "1",
        "memory": "1Gi",
    }
    assert job(cluster, **request, gpus=1)
    with pytest.raises(WorkloadError, match="requests more than 1 fails"):
        job(cluster, **request, gpus=2)
    with pytest.raises(
        WorkloadError, match="gpus is 17, and a node of pool work has 16 shares of nvidia-tesla"
    ):
        job(cluster, **request, gpus=17)


def test_nodes_come_together_for_the_queues_that_ask_for_it() -> None:
    """One queue suffices for the check, and another one is without it."""
    together = {"name": "together", "pools": ["t4"], "together": True}
    made = queueing(declare(changed(AKS, queues=[together, {"name": "alone", "pools": ["t4"]}])))
    assert [check.name for check in made.checks] == ["together"]
    assert {queue.name: [*queue.checks] for queue in made.cluster_queues} == {
        "together": ["together"],
        "alone": [],
    }


TOPOLOGY = "cloud.google.com/gke-tpu-topology"
RUN: dict[str, Any] = {"name": "train", "image": "train:1", "pool": "tpus", "cpu": "1", "memory": "1Gi"}


def _tpus(machine: str = "ct5lp-hightpu-4t", **fields: Any) -> Declaration:
    return changed(GKE, pools=[GKE["pools"][0], {"name": "tpus", "machine": machine, **fields}])


def test_a_topology_has_as_many_nodes_as_its_chips_need() -> None:
    """The nodes of a TPU slice are created together, or none of them."""
    cluster = declare(_tpus(tpuTopology="4x8"))
    pool = cluster.resolved_pools[1]
    assert (pool.nodes.min, pool.nodes.max) == (0, 8)
    assert flavor(pool).offer({"tpus": 8})["google.com/tpu"] == 32


@pytest.mark.parametrize(
    ("fields", "topology"),
    [
        ({"tpuTopology": "4x4"}, "4x4"),
        ({"nodes": {"max": 2}}, "2x2"),
        ({"machine": "ct6e-standard-8t", "nodes": {"max": 2}}, "2x4"),
    ],
)
def test_pods_select_the_topology(fields: dict[str, Any], topology: str) -> None:
    """GKE refuses a pod that requests TPUs and names none."""
    pool = profile(declare(_tpus(**fields))).pool("tpus")
    assert pool.labels[TOPOLOGY] == topology
    assert (TOPOLOGY, (topology,)) in [(item.key, item.values) for item in pool.affinity]


def test_a_job_takes_a_whole_slice() -> None:
    """With fewer pods, those that run would wait for the other hosts."""
    cluster = profile(declare(_tpus(tpuTopology="4x4")))
    made, _ = job_over_nodes(cluster, 4, **RUN, gpus=4)
    assert made["spec"]["completions"] == 4
    with pytest.raises(WorkloadError, match="a TPU slice of pool tpus is 4 nodes"):
        job_over_nodes(cluster, 2, **RUN, gpus=4)
    with pytest.raises(WorkloadError, match="nodes is 1, and a TPU slice"):
        job(cluster, **RUN, gpus=4)
