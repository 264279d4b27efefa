"""The document of a preview, for terminals, pages, comparisons and other programs."""

from typing import Any, Final, Literal

from ebbtide.documents import DocumentPart
from ebbtide.reading.facts import ClusterFacts, PoolFacts
from ebbtide.recording.recording import Severity

VERSION: Final = "ebbtide.dev/preview/v1"


class AmountReport(DocumentPart):
    """An amount, USD per hour, before discounts and tax."""

    usd: float
    """The sum of the known prices."""
    unknown: tuple[str, ...] = ()
    """Items without a known price; the sum is then a lower bound."""


class ChargeReport(DocumentPart):
    """A charge."""

    item: str
    """The billed item, as `control plane`."""
    pool: str
    """The pool that it is of; empty for the cluster."""
    idle: AmountReport
    """The charge without work."""
    maximum: AmountReport
    """The charge at the maximum node counts."""
    on_demand: AmountReport
    """`maximum` at on-demand prices."""
    note: str
    """A condition, as of a free tier; empty for none."""


class PoolReport(PoolFacts):
    """A node pool, with what the machine, its taints and Kueue's queues add."""

    vcpus: int | None
    """vCPUs of a node; null for an unknown machine type."""
    memory_gib: float | None
    """Memory of a node, GiB; null for an unknown machine type."""
    admits: str
    """Pods that the scheduler admits, in words."""
    queues: tuple[str, ...]
    """Kueue's local queues that lead to it, as `namespace/name`."""
    falls_back_to: tuple[str, ...]
    """Alternative pools while the cloud has no stock of this one's machines, the next one first."""
    charge: ChargeReport
    """The charge of its nodes."""


class QuotaReport(DocumentPart):
    """A ClusterQueue's quota of a resource of a flavor."""

    flavor: str
    """Name of the ResourceFlavor."""
    resource: str
    """`cpu`, or the resource of an accelerator, as `nvidia.com/gpu`."""
    nominal: float
    """The guarantee."""
    cohort: float
    """The guarantees of the whole cohort, its own included."""
    borrowing_limit: float | None
    """The most to borrow; null for no limit."""


class QueueReport(DocumentPart):
    """A ClusterQueue."""

    name: str
    """Its name."""
    local_queues: tuple[str, ...]
    """Its LocalQueues, as `namespace/name`."""
    cohort: str
    """Its cohort; empty for none."""
    weight: str
    """Its weight in fair sharing."""
    quotas: tuple[QuotaReport, ...]
    """Its quotas, in order of preference; CPU and accelerators alone."""
    gpu_hours: dict[str, AmountReport]
    """Price of an accelerator with its share of the node, by pool."""


class CostReport(DocumentPart):
    """Cost at list prices, without charges by use: traffic, stored objects and images, logs."""

    idle: AmountReport
    """All charges without work."""
    maximum: AmountReport
    """All charges at the maximum node counts."""
    on_demand: AmountReport
    """`maximum` at on-demand prices."""
    charges: tuple[ChargeReport, ...]
    """Control planes, pools, network, disks of add-ons."""
    prices_from: str
    """Date of the oldest price in it, year and month; empty for none."""
    prices_to: str
    """Date of the newest price in it."""


class CloudQuotaReport(DocumentPart):
    """A cloud's quota that the stack needs at the maximum node counts."""

    cloud: str
    """`gke` or `aks`."""
    region: str
    """The region, or `global`."""
    name: str
    """The cloud's name of the quota."""
    amount: int
    """vCPUs, accelerators, or GB of disks."""
    pools: tuple[str, ...]
    """The pools that count against it."""


class ResourceReport(DocumentPart):
    """A resource that the program registers."""

    urn: str
    """As the engine would build it."""
    type: str
    """Type token."""
    name: str
    """Logical name."""
    kind: Literal["resource", "component", "provider", "read"]
    """`read` exists already and is only looked at; a `component` is only a place in the tree."""
    remote: bool
    """True if a component's children are created by its provider, and are missing here."""
    parent: str | None
    """URN; null directly under the stack."""
    id: str | None
    """Assumed, unless the resource is read or imported; null for a component."""
    provider: str | None
    """URN of the explicit provider; null for the ambient default."""
    depends_on: tuple[str, ...]
    """URNs of the resources that it waits for."""
    protect: bool
    """True if the engine refuses to delete it."""
    deleted_with: str | None
    """URN of the resource whose deletion takes it along."""
    retain_on_delete: bool
    """True if its deletion leaves it in the cloud."""
    ignore_changes: tuple[str, ...]
    """Property paths whose changes are ignored."""
    replace_on_changes: tuple[str, ...]
    """Property paths whose change replaces it."""
    delete_before_replace: bool | None
    """Null where the provider decides."""
    replace_with: tuple[str, ...]
    """URNs of the resources whose replacement replaces it."""
    aliases: tuple[str, ...]
    """Former URNs, or parts of them; those that a provider's package adds for every resource are left out."""
    hooks: dict[str, tuple[str, ...]]
    """Names of hooks by moment."""
    timeouts: dict[str, str]
    """Custom timeouts by step."""
    import_id: str | None
    """The existing resource that it would adopt."""
    inputs: dict[str, Any]
    """Inputs; `[secret]` and `[unknown]` replace values that cannot be shown."""
    secrets: tuple[str, ...]
    """Property paths of the secret inputs."""
    assumed_inputs: tuple[str, ...]
    """Property paths of the inputs that were made of an assumed answer."""
    assumed: tuple[str, ...]
    """Property paths of the outputs that stand for the cloud's answer, and `id`."""


class MessageReport(DocumentPart):
    """Something that the program said."""

    severity: Severity
    """`info`, `warning` or `error`."""
    text: str
    """Secrets of the configuration are masked."""
    urn: str | None
    """The resource that it is about, if any."""


class AssumptionReport(DocumentPart):
    """Answers that no cloud gave."""

    of: str
    """URN of a resource, or token of a function that the program calls."""
    args: dict[str, Any]
    """Arguments of the function; empty for a resource."""
    answers: dict[str, Any]
    """Assumed values by property path; `[secret]` replaces values that cannot be shown."""


class Counts(DocumentPart):
    """Resources, counted by what becomes of them."""

    resources: int
    """All of them."""
    created: int
    """In a cloud or cluster, made by this stack."""
    components: int
    """Places in the tree."""
    providers: int
    """Explicit providers."""
    opaque: int
    """Components among them whose parts are made by their provider, and are not in this document."""
    read: int
    """There already, and only looked at."""
    protected: int
    """That the engine would refuse to delete."""
    dying: int
    """That go with another resource, without a deletion of their own."""
    retained: int
    """That deleting leaves in the cloud."""
    by_type: dict[str, int]
    """By type token."""


class FindingReport(DocumentPart):
    """A broken policy rule."""

    rule: str
    """Id of the rule, as `work-pools-from-zero`."""
    level: Literal["advisory", "mandatory"]
    """A broken mandatory rule fails the review, unless there is an exception."""
    resource: str
    """URN of the resource; empty for the whole stack."""
    name: str
    """Display name of the resource, as `pool t4-spot`."""
    message: str
    """The violation, and what to write instead."""
    reason: str
    """Purpose of the rule."""
    source: str
    """Source of the rule, as an item of a CIS benchmark."""
    exception: str
    """The declared reason for an exception; empty for none."""

    @property
    def is_refused(self) -> bool:
        """True if it fails the review."""
        return self.level == "mandatory" and not self.exception


class Preview(DocumentPart):
    """Resources that a stack's program would create, without a request to any cloud."""

    version: Literal["ebbtide.dev/preview/v1"] = VERSION
    """Of this form of document."""
    project: str
    """Name of the Pulumi project."""
    stack: str
    """Name of the stack."""
    extends: tuple[str, ...] = ()
    """Files that the stack's declaration extends, the nearest first."""
    changes_to_base: tuple[str, ...] = ()
    """Paths of the declaration that the stack's own file sets or removes; empty without a base."""
    clusters: tuple[ClusterFacts, ...]
    """Clusters that the stack makes."""
    pools: tuple[PoolReport, ...]
    """Node pools, system pools first."""
    queues: tuple[QueueReport, ...]
    """ClusterQueues that have a LocalQueue."""
    cost: CostReport
    """Cost of the stack."""
    quotas: tuple[CloudQuotaReport, ...]
    """Cloud quotas that it needs."""
    resources: tuple[ResourceReport, ...]
    """In the order of their registration; parents before children."""
    outputs: dict[str, Any]
    """The stack's; `[secret]` and `[unknown]` stand for what cannot be shown."""
    warnings: tuple[MessageReport, ...]
    """Warnings and errors of the program, and what the preview cannot follow."""
    messages: tuple[MessageReport, ...]
    """Other messages of the program."""
    assumptions: tuple[AssumptionReport, ...]
    """Values that replace the answers of clouds."""
    counts: Counts
    """Number of resources."""
    findings: tuple[FindingReport, ...] = ()
    """Broken policy rules: refused, then advisory, then excepted ones."""


def preview_schema() -> dict[str, Any]:
    """JSON Schema of the document."""
    schema = Preview.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
