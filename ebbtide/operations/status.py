"""Status of a stack: nodes, work, queues, use of GPUs, and cost, from its state and its cluster's API."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from ebbtide.analysis.charges import Rates, deployed, rates_of
from ebbtide.analysis.metrics import MetricSources, metric_sources
from ebbtide.clients.clouds import connect
from ebbtide.clients.clouds.connect import metric_source
from ebbtide.clients.clouds.interfaces import CloudApiError
from ebbtide.clients.kubernetes import Api, ApiError, Object
from ebbtide.clients.kubernetes.objects import condition, items_of, part, parts, text
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.labels_and_taints import AGENT_POOL, NODE_POOL
from ebbtide.operations import access
from ebbtide.operations.engine import state
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.engine.state import OwnCluster, own_cluster
from ebbtide.operations.ledger import Report, find_record, report
from ebbtide.operations.status_report import (
    CostStatus,
    GpuStatus,
    OtherQueue,
    PoolStatus,
    QueueStatus,
    ReservationStatus,
    Status,
    UnusedGpus,
    WaitingWork,
    WorkStatus,
)
from ebbtide.operations.work import Snapshot, Work, pools_of_nodes, root_of, roots, take_snapshot, work
from ebbtide.placement import PoolProfile, Profile
from ebbtide.placement.kueue_settings import DEFINITION, controller_of, differences, installation
from ebbtide.values import clock
from ebbtide.values.kueue_api import API_PATH, CLUSTER_QUEUES
from ebbtide.work.evidence import Evidence, Workloads
from ebbtide.work.placement import misfit
from ebbtide.work.queue_causes import queue_cause

_UNKNOWN: Final = "waiting work is unknown"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_REQUESTS: Final = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
UNUSED_HOURS: Final = 1
"""Time without use, hours."""
UNKNOWN: Final = "its status is unknown"
_START: Final = timedelta(minutes=15)
"""Maximum time that a node takes to become ready; the autoscalers of GKE and AKS then give up
(cluster-autoscaler, `max-node-provision-time`)."""
_SPENT: Final = timedelta(days=30)
"""Period of recorded costs."""


@dataclass(frozen=True, slots=True)
class QueueObjects:
    """Objects of Kueue and ProvisioningRequests.

    Attributes:
        requests: the ProvisioningRequests, each owned by a Workload.
    """

    cluster_queues: tuple[Object, ...] = ()
    local_queues: tuple[Object, ...] = ()
    requests: tuple[Object, ...] = ()


def take_queueing(api: Api) -> QueueObjects:
    """Read the objects of Kueue. A kind that is not installed has no objects.

    Raises:
        ApiError: the API server does not answer or denies access.
    """

    def items(path: str) -> tuple[Object, ...]:
        return tuple(items_of(api.find(path, resourceVersion="0")))

    return QueueObjects(items(CLUSTER_QUEUES), items(f"{API_PATH}/localqueues"), items(_REQUESTS))


def read_controller(api: Api) -> tuple[Mapping[str, Any], str, Sequence[str]] | None:
    """Return configuration, image and arguments of the controller of the cluster's Kueue; None if there is no
    configuration.

    Raises:
        ApiError: the API server does not answer, or denies access to the ConfigMap.
    """
    found = installation(part(_readable(api, f"{_DEFINITIONS}/{DEFINITION}"), "spec"))
    data = part(api.find(f"/api/v1/namespaces/{found.namespace}/configmaps/{found.config_map}") or {}, "data")
    deployment = f"/apis/apps/v1/namespaces/{found.namespace}/deployments/{found.deployment}"
    return controller_of(data, part(_readable(api, deployment), "spec")) if data else None


def _readable(api: Api, path: str) -> Mapping[str, Any]:
    """Return an object; empty if there is none, or the user may not read it."""
    try:
        return api.find(path) or {}
    except ApiError as error:
        if not error.forbidden:
            raise
        return {}


def kueue_differences(api: Api, declaration: Cluster) -> Iterator[str]:
    """Yield a sentence for each setting of an existing Kueue that differs from those that the queues depend
    on."""
    try:
        controller = read_controller(api)
    except ApiError as error:
        yield f"The settings of the cluster's Kueue are unknown: {error}"
        return
    if controller is not None:
        yield from (str(item.fault) for item in differences(declaration, *controller))


def queue_statuses(
    queueing: QueueObjects, snapshot: Snapshot, profile: Profile, now: datetime
) -> tuple[QueueStatus, ...]:
    """Return the status of the profile's queues.

    Args:
        queueing: Kueue's objects.
    """
    cluster_queues = {_name(queue): queue for queue in queueing.cluster_queues}
    leads_to = {
        (_namespace(queue), _name(queue)): cluster_queues.get(text(queue, "spec", "clusterQueue"))
        for queue in queueing.local_queues
    }
    owners = roots(snapshot)
    requests = _by_workload(queueing.requests)
    unfinished = Workloads(item for item in snapshot.workloads if not condition(item, "Finished"))

    def waiting_work(workload: Object, pools: Iterable[PoolProfile]) -> WaitingWork:
        item = root_of("Workload", workload, owners)
        evidence = Evidence(
            kind=item.kind,
            namespace=item.namespace,
            name=item.name,
            now=now,
            workload=workload,
            local_queues=[queue for queue in queueing.local_queues if _namespace(queue) == item.namespace],
            cluster_queue=leads_to.get(_local_queue(workload)),
            workloads=unfinished,
            is_complete=True,
            request=requests.get(workload["metadata"]["uid"]),
        )
        return WaitingWork(
            kind=item.kind,
            namespace=item.namespace,
            name=item.name,
            since=datetime.fromisoformat(workload["metadata"]["creationTimestamp"]),
            reason=queue_cause(evidence).message,
            never=misfit(workload, pools),
        )

    statuses: list[QueueStatus] = []
    for queue in profile.queues:
        local = {(item.namespace, item.name) for item in queue.local_queues}
        own = [item for item in unfinished if _local_queue(item) in local]
        waiting = [
            waiting_work(item, map(profile.pool, queue.pools))
            for item in own
            if not condition(item, "Admitted")
        ]
        statuses.append(
            QueueStatus(
                name=queue.name,
                held=any(
                    (text(leads_to.get(item) or {}, "spec", "stopPolicy") not in {"", "None"})
                    for item in local
                ),
                admitted=len(own) - len(waiting),
                waiting=tuple(sorted(waiting, key=lambda item: (item.since, item.namespace, item.name))),
            )
        )
    return tuple(statuses)


def other_queues(queueing: QueueObjects, own: Container[str]) -> tuple[OtherQueue, ...]:
    """Return the ClusterQueues of others in the cohorts of a stack's queues.

    Args:
        queueing: Kueue's objects.
        own: names of the stack's ClusterQueues.
    """
    cohorts = {text(queue, "spec", "cohortName") for queue in queueing.cluster_queues if _name(queue) in own}
    return tuple(
        OtherQueue(
            name=_name(queue),
            cohort=text(queue, "spec", "cohortName"),
            admitted=int(part(queue, "status").get("admittedWorkloads") or 0),
            waiting=int(part(queue, "status").get("pendingWorkloads") or 0),
        )
        for queue in queueing.cluster_queues
        if _name(queue) not in own and text(queue, "spec", "cohortName") in cohorts - {""}
    )


def never_admitted(outputs: Mapping[str, Any], profile: Profile) -> list[tuple[QueueStatus, WaitingWork]]:
    """Return the waiting work of a stack that no pool of its queue could ever run.

    Args:
        profile: the stack's profile as it would be.

    Raises:
        OperationError: the cluster does not answer, or an output is missing.
    """
    api, _ = access.connected(outputs, _UNKNOWN)
    with access.reaching(_UNKNOWN):
        statuses = queue_statuses(take_queueing(api), take_snapshot(api), profile, clock.now())
    return [(queue, item) for queue in statuses for item in queue.waiting if item.never]


def _by_workload(requests: Iterable[Object]) -> dict[str, Object]:
    """Map uids of Workloads to their newest ProvisioningRequest: each retry creates one."""
    newest = sorted(requests, key=lambda item: item["metadata"]["creationTimestamp"])
    return {
        owner["uid"]: request for request in newest for owner in parts(request, "metadata", "ownerReferences")
    }


def _local_queue(workload: Object) -> tuple[str, str]:
    return _namespace(workload), text(workload, "spec", "queueName")


def _namespace(item: Object) -> str:
    return text(item, "metadata", "namespace")


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])


def gpu_status(sources: MetricSources | None) -> GpuStatus:
    """Return the pods that have held GPUs for an hour without using them.

    Args:
        sources: the metrics that the stack collects; None for none.
    """
    if sources is None or not sources.gpus:
        return GpuStatus(measured=False)
    try:
        samples = metric_source(sources.cloud, sources.store).query(sources.unused(UNUSED_HOURS))
    except CloudApiError as error:
        return GpuStatus(measured=True, unknown=str(error))
    held = Counter(
        (labels.get("namespace", ""), labels.get("pod", ""), labels.get("Hostname", ""))
        for labels in (sample.labels for sample in samples)
    )
    return GpuStatus(
        measured=True,
        unused=tuple(
            UnusedGpus(namespace=namespace, pod=pod, node=node, gpus=count)
            for (namespace, pod, node), count in sorted(held.items())
        ),
    )


@dataclass(frozen=True, slots=True)
class StatusSource:
    """A stack whose status is read repeatedly; its state is read once.

    Attributes:
        metrics: the metrics that it collects; None for none.
        cluster: its own cluster; None for an existing one.
        existing_kueue: its declaration, if its queues are those of an existing Kueue; else None.
    """

    name: str
    state: state.State
    rates: Rates
    profile: Profile
    api: Api
    metrics: MetricSources | None = None
    cluster: OwnCluster | None = None
    existing_kueue: Cluster | None = None


def source(
    name: str, exported: Mapping[str, Any], outputs: Mapping[str, Any], declaration: Cluster | None = None
) -> StatusSource:
    """Return the source of a stack's status.

    Args:
        exported: the document of `pulumi stack export`.

    Raises:
        OperationError: an output is missing or unusable.
    """
    api, profile = access.connected(outputs, UNKNOWN)
    recording, kueue = deployed(exported), declaration.addons.kueue if declaration else None
    return StatusSource(
        name=name,
        state=state.read(exported["deployment"]),
        rates=rates_of(recording),
        profile=profile,
        api=api,
        metrics=metric_sources(recording),
        cluster=_own_cluster(name, exported["deployment"]),
        existing_kueue=declaration if kueue is not None and not kueue.is_installed else None,
    )


def _own_cluster(name: str, deployment: Mapping[str, Any]) -> OwnCluster | None:
    try:
        return own_cluster(name, deployment)
    except OperationError:
        return None


def _is_stopped(cluster: OwnCluster | None) -> bool:
    """Return whether the cloud has stopped a cluster; False if the cloud cannot be asked."""
    if cluster is None:
        return False
    try:
        return connect.cluster_power(cluster.cloud, cluster.id, cluster.pools).is_stopped()
    except (CloudApiError, ModuleNotFoundError):
        return False


def read(source: StatusSource) -> Status:
    """Read the status.

    Raises:
        OperationError: the cluster sleeps and does not answer, or it does not answer or denies access.
    """
    try:
        with access.reaching_own(UNKNOWN, source.name, source.state):
            snapshot, queueing = take_snapshot(source.api), take_queueing(source.api)
            now = clock.now()  # by the cluster's clock, once it has answered
            start = (now - _SPENT).timestamp()
            record = find_record(source.api, start, now.timestamp())
    except access.UnansweredError:
        if source.state.may_be_stopped and _is_stopped(source.cluster):
            raise OperationError(access.asleep_message(source.name)) from None
        raise
    declaration = source.existing_kueue
    has_gpus = any(pool.accelerator is not None for pool in source.profile.pools)
    return status(
        source,
        snapshot,
        queueing,
        now,
        gpus=gpu_status(source.metrics) if has_gpus else None,
        kueue=tuple(kueue_differences(source.api, declaration)) if declaration else (),
        spent=report(record, start, "pool") if record else None,
    )


def status(
    source: StatusSource,
    snapshot: Snapshot,
    queueing: QueueObjects,
    now: datetime,
    *,
    gpus: GpuStatus | None = None,
    kueue: tuple[str, ...] = (),
    spent: Report | None = None,
) -> Status:
    """Derive the status.

    Args:
        queueing: Kueue's objects.
        gpus: use of the GPUs.
        kueue: differences of an existing Kueue's settings, as sentences.
        spent: recorded costs; None without a record.
    """
    profile = source.profile
    own = pools_of_nodes(snapshot.nodes, profile)
    nodes = [node for node in snapshot.nodes if node["metadata"]["name"] in own]
    queues = queue_statuses(queueing, snapshot, profile, now)
    waiting = {(item.kind, item.namespace, item.name) for queue in queues for item in queue.waiting}
    running = work(snapshot, profile, source.state)
    return Status(
        stack=source.name,
        cluster=profile.cluster,
        time=now,
        expires=source.state.expires,
        asleep=not nodes
        and any(
            access.is_asleep(queue)
            for queue in queueing.cluster_queues
            if _name(queue) in source.state.queues
        ),
        pools=tuple(
            _pool(
                pool,
                [node for node in nodes if own[node["metadata"]["name"]] == pool.name],
                source.rates,
                now,
            )
            for pool in profile.pools
        ),
        work=tuple(
            WorkStatus.model_validate(item, from_attributes=True)
            for item in running
            if (item.kind, item.namespace, item.name) not in waiting
        ),
        queues=queues,
        reservations=tuple(_reservations(source.rates, snapshot, running)),
        others=other_queues(queueing, source.state.queues),
        kueue=kueue,
        gpus=gpus,
        cost=_cost(nodes, source.rates, spent, now),
    )


def _reservations(rates: Rates, snapshot: Snapshot, running: list[Work]) -> Iterator[ReservationStatus]:
    """Yield the requested reservations, with the work on their pools that may run past their end."""
    ends = _latest_ends(snapshot)
    for item in rates.items:
        if item.begins and item.ends:
            on_pool = [work for work in running if item.reserves in work.pools]
            past = [
                f"{work.kind} {work.name} in {work.namespace}"
                for work in on_pool
                if not (latest := ends.get((work.kind, work.namespace, work.name))) or latest > item.ends
            ]
            yield ReservationStatus(
                pool=item.reserves, begins=item.begins, ends=item.ends, ends_work=tuple(past)
            )


def _latest_ends(snapshot: Snapshot) -> dict[tuple[str, str, str], datetime | None]:
    """Return the latest end of running work, by kind, namespace and name: of its Job, or else of the attempts
    that its pods are; None without a time limit."""
    owners = roots(snapshot)
    ends: dict[tuple[str, str, str], datetime | None] = {}
    for pod in snapshot.pods:
        item = root_of("Pod", pod, owners)
        key, end = (item.kind, item.namespace, item.name), _end(pod)
        latest = ends.get(key, end)
        ends[key] = max(latest, end) if latest and end else None
    whole = {("Job", _namespace(job), _name(job)): _end(job) for job in snapshot.controllers.get("Job", ())}
    return ends | {key: end for key, end in whole.items() if end}


def _end(item: Object) -> datetime | None:
    """Return the end of a started Job or pod with a time limit."""
    seconds, start = part(item, "spec").get("activeDeadlineSeconds"), text(item, "status", "startTime")
    return datetime.fromisoformat(start) + timedelta(seconds=int(seconds)) if seconds and start else None


def _pool(pool: PoolProfile, nodes: list[Object], prices: Rates, now: datetime) -> PoolStatus:
    states = Counter(_state(node, now) for node in nodes)
    cost = prices.of_nodes(Counter(map(_cloud_pool, nodes)))
    return PoolStatus(
        name=pool.name,
        capacity=pool.capacity,
        machine=pool.machine,
        ready=states["ready"],
        coming=states["coming"],
        cordoned=states["cordoned"],
        not_ready=states["not ready"],
        maximum=pool.max_nodes,
        oldest=min(map(_created, nodes), default=None),
        usd_per_hour=None if cost.is_unknown else round(cost.known, 4),
        estimated=bool(cost.estimated),
    )


def _state(node: Object, now: datetime) -> Literal["ready", "coming", "cordoned", "not ready"]:
    if part(node, "spec").get("unschedulable"):
        return "cordoned"
    if condition(node, "Ready"):
        return "ready"
    return "coming" if now - _created(node) < _START else "not ready"


def _created(item: Object) -> datetime:
    return datetime.fromisoformat(item["metadata"]["creationTimestamp"])


def _cloud_pool(node: Object) -> str:
    """Return the name in the cloud of a node's pool."""
    labels = part(node, "metadata", "labels")
    return text(labels, NODE_POOL) or text(labels, AGENT_POOL)


def _cost(nodes: list[Object], prices: Rates, spent: Report | None, now: datetime) -> CostStatus:
    """Return the cost now, and what nodes have cost if it is recorded: nodes that left leave no other
    trace."""
    total = prices.at(Counter(map(_cloud_pool, nodes)), now)
    return CostStatus(
        usd_per_hour=round(total.known, 4),
        always_usd_per_hour=round(prices.at({}, now).known, 4),
        unknown=total.unknown,
        estimated=total.estimated,
        prices_of=tuple(sorted({price.as_of for price in total.prices if price.as_of})),
        spent_usd=round(spent.total.cost, 4) if spent else None,
        idle_usd=round(spent.idle, 4) if spent else None,
        spent_since=datetime.fromtimestamp(spent.begins, UTC) if spent else None,
    )
