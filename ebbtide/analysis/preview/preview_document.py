"""The document of a preview, for terminals, pages, comparisons and other programs."""

from datetime import datetime
from typing import Any, Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from ebbtide.analysis.quotas import Quota
from ebbtide.analysis.reading.facts import ClusterFacts, QueueFacts, QuotaFacts
from ebbtide.analysis.recording.recording import Message
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.declaration.model.capacity import CapacityKind
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.documents import CONFIG, DocumentPart

VERSION: Final = "ebbtide.dev/preview/v1"


class AmountReport(DocumentPart):
    """An amount, USD per hour, before discounts and tax."""

    usd: float
    """Sum of the known prices."""
    unknown: tuple[str, ...] = ()
    """Items without a known price; the sum is then a lower bound."""
    estimated: tuple[str, ...] = ()
    """Items whose price is an estimate; the sum is then one, too."""
    usd_per_month: float = 0.0
    """`usd` for a month of 730 hours."""

    @property
    def amount(self) -> Amount:
        """The amount, which has its texts."""
        return Amount(self.usd, self.unknown, self.estimated)


class ChargeReport(DocumentPart):
    """A charge."""

    item: str
    """Billed item, such as `control plane`."""
    pool: str
    """Name of the pool; empty for the cluster."""
    idle: AmountReport
    """Charge without work."""
    maximum: AmountReport
    """Charge at the maximum node counts."""
    on_demand: AmountReport
    """`maximum` at on-demand prices."""
    note: str
    """Condition, such as a free tier; empty for none."""
    committed: int = 0
    """Number of committed machines or accelerators; 0 for other charges."""
    pays_above: float | None = None
    """For a commitment, the share of use above which it costs less than the list price; null if unknown, and
    for other charges."""
    reserves: str = ""
    """Pool whose machines it reserves; empty for other charges."""
    begins: datetime | None = None
    """Begin of the period in which `maximum` is billed, used or not; null for no period."""
    ends: datetime | None = None
    """Its end."""
    whole: AmountReport | None = None
    """Charge for the whole period, USD; null for no period."""


@dataclass(frozen=True, config=CONFIG)
class AcceleratorReport:
    """The accelerators of one node."""

    type: str
    """As the cloud names it, such as `nvidia-tesla-t4`."""
    count: int
    """Number per node."""
    requestable: int
    """Number that the pods of a node can request; of shared GPUs, the shares."""
    sharing: str = ""
    """Partitioning and sharing of GPUs, as `1g.5gb` or `time-sharing by 8`; empty for none."""
    topology: str = ""
    """Topology of a TPU slice of several nodes, as `4x4`; empty for others."""


@dataclass(frozen=True, config=CONFIG)
class DiskReport:
    """The boot disk of a node."""

    size_gib: int | None
    """GiB; null for the cloud's default."""
    type: str | None
    """As the cloud names it; null for the cloud's default."""


@dataclass(frozen=True, config=CONFIG)
class TaintReport:
    """A taint of nodes, as Kubernetes has it."""

    key: str
    """Its key."""
    value: str
    """Its value; empty where it has none."""
    effect: str
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`."""
    automatic: bool = False
    """True if the cloud adds it by itself."""

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, config=CONFIG)
class NodesReport:
    """Node counts, in total over the zones of the pool."""

    minimum: int | None = None
    """The autoscaler's minimum; null for a fixed count."""
    maximum: int | None = None
    """The autoscaler's maximum; null for a fixed count."""
    fixed: int | None = None
    """The count without autoscaling; null with it."""
    initial: int | None = None
    """Initial node count; null if the cloud starts at the minimum."""

    @property
    def idle(self) -> int:
        """The node count without workloads."""
        return self.fixed if self.fixed is not None else self.minimum or 0

    @property
    def most(self) -> int:
        """The maximum node count."""
        return self.fixed if self.fixed is not None else self.maximum or self.idle


class PoolReport(DocumentPart):
    """A node pool, as its resource has it, with facts about its machine and Kueue queues."""

    name: str
    """Name in the cloud."""
    cluster: str
    """Name of its cluster."""
    cloud: CloudKind
    """`gke` or `aks`."""
    location: str = ""
    """Zone or region of the cluster; empty if not recorded, as for a pool of an existing AKS cluster."""
    role: Literal["system", "work"]
    """`system` for the pool of pods without tolerations: a mode on AKS; on GKE a pool without taints that
    never scales to zero."""
    machine: str
    """Machine type."""
    accelerator: AcceleratorReport | None
    """Accelerators of a node, declared or part of the machine type; null for a CPU pool."""
    capacity: CapacityKind
    """Capacity type."""
    reservation: str = ""
    """The reservation of its machines, or `any`; empty for none."""
    max_price: float | None = None
    """Maximum price of a spot machine, USD per hour; null for up to the list price."""
    nodes: NodesReport
    """Node counts."""
    zones: tuple[str, ...] = ()
    """Zones of the nodes; empty for the cluster's."""
    disk: DiskReport
    """Boot disk of a node."""
    local_disks: str = ""
    """Local disks of the machine that a node uses, in words; empty for none."""
    settings: tuple[str, ...] = ()
    """Other settings of its nodes, in words, as `gVNIC`."""
    labels: dict[str, str]
    """Kubernetes labels that the resource declares."""
    taints: tuple[TaintReport, ...]
    """Declared and automatic taints."""
    max_run_seconds: int | None = None
    """Maximum lifetime of a node; null for no limit."""
    billing: dict[str, str]
    """Billing labels, which Azure calls tags."""
    network_tags: tuple[str, ...] = ()
    """Network tags of nodes on Google Cloud."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Inputs of the pool's resource that the declaration overrides, by path."""
    urn: str
    """The pool's resource; the cluster's for an inline pool."""
    inline: bool = False
    """True if the pool is part of its cluster's resource."""
    vcpus: int | None
    """vCPUs of a node; null for an unknown machine type."""
    memory_gib: float | None
    """Memory of a node, GiB; null for an unknown machine type."""
    admits: str
    """Description of the pods that the scheduler admits."""
    queues: tuple[str, ...]
    """Kueue LocalQueues for the pool, as `namespace/name`."""
    falls_back_to: tuple[str, ...]
    """Alternative pools for when the cloud has no stock of this pool's machines, the next one first."""
    charge: ChargeReport
    """Charge of its nodes."""


class QueueReport(QueueFacts):
    """A ClusterQueue, with prices."""

    gpu_hours: dict[str, AmountReport]
    """Price of an accelerator including its share of the node, by pool."""

    @property
    def by_flavor(self) -> tuple[QuotaFacts, ...]:
        """A quota for each flavor: of accelerators, or else of CPUs."""
        quotas: dict[str, QuotaFacts] = {}
        for quota in self.quotas:
            if quota.flavor not in quotas or quota.resource != "cpu":
                quotas[quota.flavor] = quota
        return tuple(quotas.values())


class CostReport(DocumentPart):
    """Cost at list prices, without usage-based charges: traffic, stored objects and images, logs."""

    idle: AmountReport
    """All charges without work."""
    maximum: AmountReport
    """All charges at the maximum node counts."""
    on_demand: AmountReport
    """`maximum` at on-demand prices."""
    charges: tuple[ChargeReport, ...]
    """Control planes, pools, network, disks of add-ons."""
    prices_from: str
    """Date of the oldest price, year and month; empty for none."""
    prices_to: str
    """Date of the newest price."""


class ResourceReport(DocumentPart):
    """A resource that the program registers."""

    urn: str
    """URN as built by the engine."""
    type: str
    """Type token."""
    name: str
    """Logical name."""
    kind: Literal["resource", "component", "provider", "read"]
    """`read`: exists already and is only read. `component`: only a node of the tree."""
    remote: bool
    """True if the component's provider creates its children, which are missing here."""
    parent: str | None
    """URN; null directly under the stack."""
    id: str | None
    """Placeholder unless the resource is read or imported; null for a component."""
    provider: str | None
    """URN of the explicit provider; null for the default provider."""
    depends_on: tuple[str, ...]
    """URNs of the resources that it depends on."""
    protect: bool
    """True if the engine refuses to delete it."""
    deleted_with: str | None
    """URN of the resource that it is deleted with."""
    retain_on_delete: bool
    """True if its deletion keeps it in the cloud."""
    ignore_changes: tuple[str, ...]
    """Property paths whose changes are ignored."""
    replace_on_changes: tuple[str, ...]
    """Property paths whose change replaces it."""
    delete_before_replace: bool | None
    """Null if the provider decides."""
    replace_with: tuple[str, ...]
    """URNs of the resources whose replacement replaces it."""
    aliases: tuple[str, ...]
    """Former URNs, or parts of them, without those that a provider's package adds to every resource."""
    hooks: dict[str, tuple[str, ...]]
    """Names of hooks by hook type."""
    timeouts: dict[str, str]
    """Custom timeouts by operation."""
    import_id: str | None
    """Id of the existing resource to import."""
    inputs: dict[str, Any]
    """Inputs; `[secret]` and `[unknown]` replace values that cannot be shown."""
    secrets: tuple[str, ...]
    """Property paths of the secret inputs."""
    assumed_inputs: tuple[str, ...]
    """Property paths of the inputs that depend on an assumed answer."""
    assumed: tuple[str, ...]
    """Property paths of the assumed outputs, and `id`."""


class AssumptionReport(DocumentPart):
    """Assumed answers of the clouds."""

    of: str
    """URN of a resource, or token of an invoked function."""
    args: dict[str, Any]
    """Arguments of the function; empty for a resource."""
    answers: dict[str, Any]
    """Assumed values by property path; `[secret]` replaces values that cannot be shown."""


class Counts(DocumentPart):
    """Number of resources by kind and by options."""

    resources: int
    """All resources."""
    created: int
    """Resources that the stack creates in a cloud or cluster."""
    adopted: int
    """Existing resources that the stack imports."""
    components: int
    """Components."""
    providers: int
    """Explicit providers."""
    opaque: int
    """Components whose provider creates their children, which are missing here."""
    read: int
    """Existing resources that are only read."""
    protected: int
    """Protected resources."""
    deleted_with: int
    """Resources with `deleted_with`."""
    retained: int
    """Resources that remain in the cloud when deleted from the stack."""
    by_type: dict[str, int]
    """Resources by type token."""


class FindingReport(DocumentPart):
    """A broken policy rule."""

    rule: str
    """Id of the rule, such as `work-pools-from-zero`."""
    level: Literal["advisory", "mandatory"]
    """A broken mandatory rule fails the review, unless there is an exception."""
    resource: str
    """URN of the resource; empty for the whole stack."""
    name: str
    """Display name of the resource, such as `pool t4-spot`."""
    message: str
    """Violation with a suggested fix."""
    reason: str
    """Purpose of the rule."""
    source: str
    """Source of the rule, such as an item of a CIS benchmark."""
    exception: str
    """Declared reason for an exception, with its last day; empty for none."""

    @property
    def is_refused(self) -> bool:
        """True if it fails the review."""
        return self.level == "mandatory" and not self.exception


class Preview(DocumentPart):
    """Resources that a stack's program would create, without a request to any cloud."""

    version: Literal["ebbtide.dev/preview/v1"] = VERSION
    """Version of the document format."""
    project: str
    """Name of the Pulumi project."""
    stack: str
    """Name of the stack."""
    extends: tuple[str, ...] = ()
    """Files that the stack's declaration extends, the nearest first."""
    changes_to_base: tuple[str, ...] = ()
    """Paths of the declaration that the stack's own file sets or removes; empty without a base."""
    clusters: tuple[ClusterFacts, ...]
    """Clusters of the stack."""
    resource_overrides: dict[str, Any] = Field(default_factory=dict)
    """Inputs of other resources that `cloud.resources` overrides, by path below `cloud`."""
    pools: tuple[PoolReport, ...]
    """Node pools, system pools first."""
    queues: tuple[QueueReport, ...]
    """ClusterQueues that have a LocalQueue."""
    cost: CostReport
    """Cost of the stack."""
    quotas: tuple[Quota, ...]
    """Cloud quotas that the stack needs."""
    without_quota: tuple[str, ...] = ()
    """Machine types whose cloud quotas are unknown; `quotas` does not count them."""
    resources: tuple[ResourceReport, ...]
    """Resources in the order of their registration, parents before children."""
    outputs: dict[str, Any]
    """Outputs of the stack; `[secret]` and `[unknown]` replace values that cannot be shown."""
    warnings: tuple[Message, ...]
    """Warnings and errors of the program, and limitations of the preview."""
    messages: tuple[Message, ...]
    """Other messages of the program."""
    assumptions: tuple[AssumptionReport, ...]
    """Assumed answers of the clouds."""
    counts: Counts
    """Numbers of resources."""
    findings: tuple[FindingReport, ...] = ()
    """Broken policy rules: mandatory, then advisory, then excepted ones."""
