"""Build the document of a preview from a recording. The document contains no secrets, not even encrypted."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel

from ebbtide.analysis.charges import Charge, charges, gpu_hour
from ebbtide.analysis.policy.check import Earlier, Finding, check
from ebbtide.analysis.policy.settings import Level, Policy
from ebbtide.analysis.preview.preview_document import (
    AcceleratorReport,
    AmountReport,
    AssumptionReport,
    ChargeReport,
    CostReport,
    Counts,
    DiskReport,
    FindingReport,
    NodesReport,
    PoolReport,
    Preview,
    QueueReport,
    ResourceReport,
    TaintReport,
)
from ebbtide.analysis.quotas import quotas, without_quota
from ebbtide.analysis.reading.facts import QueueFacts, RecordedPool
from ebbtide.analysis.reading.pools import (
    admits,
    read_cluster_queues,
    read_clusters,
    read_fallbacks,
    read_flavors,
    read_pools,
    read_queues,
    read_resource_overrides,
)
from ebbtide.analysis.recording.assumption_tables import is_assumed
from ebbtide.analysis.recording.recording import Message, Recording, Resource
from ebbtide.analysis.recording.values import SECRET_TEXT, Plain, Secret, at, leaves, masked
from ebbtide.declaration.catalog.amounts import HOURS_PER_MONTH, Amount, total
from ebbtide.declaration.model.capacity import Reservation, Spot
from ebbtide.declaration.model.pool import Accelerator
from ebbtide.declaration.project.extends import Declaration
from ebbtide.text import several

_P = TypeVar("_P", bound=BaseModel)
_PROVIDER: Final = "pulumi:providers:"
_RESERVATIONS: Final = {"specific": "of its own", "any": "any", "any-then-fail": "any, and no other machines"}
"""Words for a reservation without a name, by affinity."""


def preview_of(
    recording: Recording,
    warnings: Iterable[str] = (),
    policy: Policy | None = None,
    *,
    declaration: Declaration | None = None,
    errors: Iterable[str] = (),
    earlier: Earlier | None = None,
    deleted: Sequence[Resource] = (),
) -> Preview:
    """Build the document of a recording.

    Args:
        recording: the recording of the program.
        warnings: warnings besides the program's.
        policy: the stack's policy; None for the default one.
        declaration: the stack's declaration, for the files that it extends.
        errors: errors besides the program's, such as those of other stacks that extend this one's file.
        earlier: policy and prices before the change under review, if any.
        deleted: resources that the change under review deletes.
    """
    pools, clusters = read_pools(recording), read_clusters(recording)
    cost = charges(recording, clusters, pools)
    cost_report = _cost(cost)
    of_pools = (charge for charge in cost_report.charges if charge.pool)
    rules = policy or Policy()
    findings = check(recording, clusters, pools, cost, rules, earlier=earlier, deleted=deleted)
    flavors = read_flavors(recording, pools)
    pool_of_flavor = {name: pools[own[0]].name for name, own in flavors.items() if len(own) == 1}
    queues = read_queues(recording, pools, flavors)
    fallbacks, gpu_hours = read_fallbacks(recording, pools, queues), _gpu_hours(pools, queues)
    messages = [
        *(Message(severity="error", text=text) for text in errors),
        *(Message(severity="warning", text=text) for text in warnings),
        *recording.messages,
    ]
    return Preview(
        project=recording.project,
        stack=recording.stack,
        extends=declaration.bases if declaration else (),
        changes_to_base=declaration.changes if declaration else (),
        clusters=tuple(
            cluster.model_copy(update={"overrides": masked(cluster.overrides)}) for cluster in clusters
        ),
        resource_overrides=masked(read_resource_overrides(recording)),
        pools=tuple(map(pool_report, pools, queues, fallbacks, of_pools)),
        queues=tuple(_queue(queue, gpu_hours, pool_of_flavor) for queue in read_cluster_queues(recording)),
        cost=cost_report,
        quotas=tuple(quotas(pools)),
        without_quota=without_quota(pools),
        resources=tuple(_resource(resource) for resource in recording),
        outputs=masked(dict(recording.outputs)),
        warnings=tuple(message for message in messages if message.severity != "info"),
        messages=tuple(message for message in messages if message.severity == "info"),
        assumptions=tuple(_assumptions(recording)),
        counts=_counts(recording),
        findings=tuple(map(_finding, findings)),
    )


def _finding(finding: Finding) -> FindingReport:
    return FindingReport(
        rule=finding.rule.id,
        level="mandatory" if finding.level is Level.MANDATORY else "advisory",
        resource=finding.subject.urn,
        name=str(finding.subject),
        message=finding.message,
        reason=finding.rule.reason,
        source=finding.rule.source,
        exception=finding.exception,
    )


def _view(part: type[_P], facts: object, **more: object) -> _P:
    """Return a part of the document from the facts with the same names and further fields."""
    fields = {name: getattr(facts, name) for name in part.model_fields if name not in more}
    return part.model_validate(fields | more, from_attributes=True)


def _gpu_hours(
    pools: Iterable[RecordedPool], local_queues: Iterable[tuple[str, ...]]
) -> dict[str, dict[str, AmountReport]]:
    """Return the price of an hour on each pool's GPUs, by local queue and pool."""
    prices: dict[str, dict[str, AmountReport]] = {}
    for pool, names in zip(pools, local_queues, strict=True):
        if (price := gpu_hour(pool)) is not None:
            for name in names:
                prices.setdefault(name, {})[pool.name] = _amount(price)
    return prices


def _queue(
    queue: QueueFacts,
    gpu_hours: Mapping[str, Mapping[str, AmountReport]],
    pool_of_flavor: Mapping[str, str],
) -> QueueReport:
    prices = {pool: price for name in queue.local_queues for pool, price in gpu_hours.get(name, {}).items()}
    quotas = [
        quota.model_copy(update={"pool": pool_of_flavor.get(quota.flavor, "")}) for quota in queue.quotas
    ]
    return _view(QueueReport, queue, quotas=quotas, gpu_hours=prices)


def _cost(items: Sequence[Charge]) -> CostReport:
    idle, maximum, on_demand = (
        total(getattr(charge, name) for charge in items) for name in ("idle", "maximum", "on_demand")
    )
    dates = sorted(price.as_of for price in (idle + maximum + on_demand).prices if price.as_of)
    return CostReport(
        idle=_amount(idle),
        maximum=_amount(maximum),
        on_demand=_amount(on_demand),
        charges=tuple(map(_charge, items)),
        prices_from=dates[0][:7] if dates else "",
        prices_to=dates[-1][:7] if dates else "",
    )


def _charge(charge: Charge) -> ChargeReport:
    amounts = {name: _amount(getattr(charge, name)) for name in ("idle", "maximum", "on_demand")}
    whole = _amount(charge.whole) if charge.whole else None
    return _view(ChargeReport, charge, **amounts, whole=whole)


def _amount(amount: Amount) -> AmountReport:
    return AmountReport(
        usd=round(amount.known, 6),
        unknown=amount.unknown,
        estimated=amount.estimated,
        usd_per_month=round(amount.known * HOURS_PER_MONTH, 2),
    )


def _kind(resource: Resource) -> Literal["resource", "component", "provider", "read"]:
    if resource.read:
        return "read"
    if not resource.custom:
        return "component"
    return "provider" if resource.type.startswith(_PROVIDER) else "resource"


def _resource(resource: Resource) -> ResourceReport:
    inputs = list(leaves(dict(resource.inputs)))
    return _view(
        ResourceReport,
        resource,
        kind=_kind(resource),
        depends_on=resource.dependencies,
        # Without those that the provider's package adds for every API version.
        aliases=tuple(it for it in resource.aliases if not it.startswith("type=") or " " in it),
        inputs=masked(dict(resource.inputs)),
        secrets=tuple(path for path, leaf in inputs if isinstance(leaf, Secret)),
        assumed_inputs=tuple(path for path, leaf in inputs if _is_invented(leaf)),
    )


def _is_invented(leaf: Plain) -> bool:
    if isinstance(leaf, Secret):
        return any(_is_invented(inner) for _, inner in leaves(leaf.value))
    return isinstance(leaf, str) and is_assumed(leaf)


def _assumptions(recording: Recording) -> Iterable[AssumptionReport]:
    for resource in recording:
        answers = _answers({"id": resource.id, **resource.outputs}, resource.assumed)
        if answers:
            yield AssumptionReport(of=resource.urn, args={}, answers=answers)
    for call in recording.invocations:
        answer = dict(call.answer)
        answers = _answers(answer, (path for path, _ in leaves(answer)))
        yield AssumptionReport(of=call.token, args=masked(dict(call.args)), answers=answers)


def _answers(values: Mapping[str, Plain], paths: Iterable[str]) -> dict[str, Any]:
    """Return the values at these paths; secrets stay masked."""
    everything = dict(values)
    secret = {key for key, value in values.items() if isinstance(value, Secret)}
    return {
        path: SECRET_TEXT if path.partition(".")[0] in secret else masked(at(everything, path))
        for path in paths
    }


def _counts(recording: Recording) -> Counts:
    kinds = Counter(_kind(resource) for resource in recording)
    adopted = sum(resource.import_id is not None for resource in recording)
    return Counts(
        resources=len(recording),
        created=kinds["resource"] - adopted,
        adopted=adopted,
        components=kinds["component"],
        providers=kinds["provider"],
        opaque=sum(resource.remote for resource in recording),
        read=kinds["read"],
        protected=sum(resource.protect for resource in recording if resource.custom),
        deleted_with=sum(resource.deleted_with is not None for resource in recording if resource.custom),
        retained=sum(resource.retain_on_delete for resource in recording if resource.custom),
        by_type=dict(sorted(Counter(resource.type for resource in recording).items())),
    )


def pool_report(
    pool: RecordedPool, queues: tuple[str, ...], falls_back_to: tuple[str, ...], charge: ChargeReport
) -> PoolReport:
    """Return a pool's part of the document.

    Args:
        queues: its LocalQueues.
        falls_back_to: its alternative pools, the next one first.
        charge: the charge of its nodes.
    """
    capacity, nodes, hardware = pool.capacity, pool.nodes, pool.hardware
    derived = pool.labels_and_taints
    return PoolReport(
        name=pool.name,
        cluster=pool.cluster,
        cloud=pool.site.cloud,
        location=pool.site.location,
        role=pool.role.value,
        machine=pool.machine_type,
        accelerator=_accelerator(pool),
        capacity=capacity.kind,
        reservation=(capacity.name or _RESERVATIONS[capacity.affinity])
        if isinstance(capacity, Reservation)
        else "",
        max_price=capacity.max_price if isinstance(capacity, Spot) else None,
        nodes=NodesReport(nodes.min, nodes.max, nodes.count, pool.initial_nodes),
        zones=pool.zones,
        disk=DiskReport(pool.disk.size_gib, pool.disk.type),
        local_disks=", ".join(_local_disks(pool)),
        settings=tuple(_settings(pool)),
        labels=pool.labels,
        taints=tuple(
            TaintReport(taint.key, taint.value, taint.effect, taint not in derived.taints)
            for taint in derived.all_taints
        ),
        max_run_seconds=pool.max_run_seconds,
        billing=pool.billing,
        network_tags=pool.network_tags,
        overrides=masked(dict(leaves(pool.overrides))),
        urn=pool.urn,
        inline=pool.inline,
        vcpus=hardware.vcpus if hardware else None,
        memory_gib=hardware.memory_gib if hardware else None,
        admits=admits(pool),
        queues=queues,
        falls_back_to=falls_back_to,
        charge=charge,
    )


def _accelerator(pool: RecordedPool) -> AcceleratorReport | None:
    accelerator = pool.accelerator
    if accelerator is None:
        return None
    return AcceleratorReport(
        accelerator.type, accelerator.count, pool.requestable, _sharing(accelerator), pool.tpu_topology or ""
    )


def _sharing(accelerator: Accelerator) -> str:
    """Return the partitioning and sharing of GPUs in words."""
    sharing = accelerator.gpu_sharing_config
    words = (
        accelerator.gpu_partition_size or accelerator.gpu_instance_profile,
        f"{sharing.gpu_sharing_strategy} by {sharing.max_shared_clients_per_gpu}" if sharing else "",
    )
    return ", ".join(filter(None, words))


def _local_disks(pool: RecordedPool) -> Iterator[str]:
    if pool.disk.kubelet_disk_type == "Temporary":
        yield "the temporary disk for ephemeral storage"
    for config, use in (
        (pool.ephemeral_storage_local_ssd_config, "for ephemeral storage"),
        (pool.local_nvme_ssd_block_config, "as block devices"),
    ):
        if config is not None and config.local_ssd_count:
            yield f"{several(config.local_ssd_count, 'local SSD')} {use}"


def _settings(pool: RecordedPool) -> Iterator[str]:
    if pool.compact:
        yield "compact placement"
    if pool.gvnic:
        yield "gVNIC"
    if pool.gpu_direct:
        yield f"GPUDirect-{pool.gpu_direct.upper()}"
    if pool.image_streaming:
        yield "image streaming"
    for disk in pool.secondary_boot_disks:
        content = "images" if disk.mode == "CONTAINER_IMAGE_CACHE" else "data"
        yield f"preloaded {content} of {disk.disk_image.rpartition('/')[2]}"
