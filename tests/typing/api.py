"""The Python API as its users write it: pyright checks these lines in strict mode, and a test runs them."""

# A line that pyright should refuse, and does not, has an ignore comment too many.
# pyright: reportUnnecessaryTypeIgnoreComment=true

from datetime import timedelta
from typing import assert_type

from ebbtide.declaration.model.addons import Addons, Kueue
from ebbtide.declaration.model.capacity import FlexStart, OnDemand, Preemptible, Queued, Reservation, Spot
from ebbtide.declaration.model.cloud import AksAccess, Gke, GkeAccess
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import check_pool
from ebbtide.declaration.model.pool import Accelerator, MachineShape, Nodes, Pool, Role, Taint, TaintEffect
from ebbtide.declaration.model.site import CloudKind, Site
from ebbtide.declaration.model.tenancy import Queue, QueueUse, Team

GKE = Site(cloud="gke", location="us-central1-a")
AKS = Site("aks", "eastus", kubernetes_version="1.33")
assert_type(GKE.cloud, CloudKind)

BY_WORD = Pool(
    name="t4",
    role="work",
    machine="n1-standard-8",
    accelerator=Accelerator(type="nvidia-tesla-t4", count=1),
    capacity="spot",
    nodes=Nodes(max=4),
    zones=["us-central1-a"],
    taints=[Taint(key="team", value="vision", effect="NoSchedule")],
    shutdown_grace="30s",
)
BY_OBJECT = Pool(
    name="t4",
    role=Role.WORK,
    machine=MachineShape(type="n1-standard-8"),
    accelerator=Accelerator(type="nvidia-tesla-t4", count=1),
    capacity=Spot(),
    nodes=Nodes(max=4),
    zones=("us-central1-a",),
    taints=(Taint(key="team", value="vision", effect=TaintEffect.NO_SCHEDULE),),
    shutdown_grace=timedelta(seconds=30),
)
assert_type(BY_WORD.machine, MachineShape | None)
assert_type(BY_WORD.role, Role)
assert_type(BY_WORD.capacity, OnDemand | Spot | Preemptible | FlexStart | Queued | Reservation)
assert_type(BY_WORD.zones, tuple[str, ...])
assert_type(BY_WORD.taints, tuple[Taint, ...] | None)
assert_type(BY_WORD.shutdown_grace, timedelta | None)
COMPLETE = check_pool(BY_WORD, GKE)

RUNS = [FlexStart(max_run_duration="12h"), Queued(max_run_duration=timedelta(days=7))]

TEAM = Team(name="vision", members=["vision@acme.example"], queues=["t4", QueueUse(queue="a100", as_="big")])
NAMES = ["t4", "a100"]
TEAM_OF_NAMES = Team(name="speech", queues=NAMES)
assert_type(TEAM.queues, tuple[QueueUse, ...])

CLUSTER = Cluster(
    name="train",
    owner="vision-team",
    cloud=Gke(project="acme-ml", location="us-central1-a", access=GkeAccess(networks=["203.0.113.0/24"])),
    pools=[Pool(name="system", role="system", machine="e2-standard-4", nodes=Nodes(max=3)), BY_WORD],
    queues=[Queue(name="t4", pools=["t4"])],
    teams=[Team(name="vision")],
    addons=Addons(kueue=Kueue(frameworks=["ray.io/rayjob"])),
)
ADMINS = AksAccess(admins=["11111111-2222-3333-4444-555555555555"])


def _refused() -> None:  # pyright: ignore[reportUnusedFunction]
    """Calls that a type checker refuses; they are not run."""
    Site(cloud="gcp", location="us-central1-a")  # pyright: ignore[reportArgumentType]
    Pool(name="t4", machine=8)  # pyright: ignore[reportArgumentType]
    Pool(name="t4", capacity="spto")  # pyright: ignore[reportArgumentType]
    Pool(name="t4", zones="us-central1-a")  # pyright: ignore[reportArgumentType]
    Pool(machine="n1-standard-8")  # pyright: ignore[reportCallIssue]
    Taint(key="team", effect="NO_SCHEDULE")  # pyright: ignore[reportArgumentType]
    Queue(name="t4", pools="t4")  # pyright: ignore[reportArgumentType]
    Queue(name="t4")  # pyright: ignore[reportCallIssue]
