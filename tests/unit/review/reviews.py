"""Reviews for tests of renderings: of a stack of the repository, with a difference and findings."""

from functools import cache

from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.preview_document import AmountReport, PoolReport, Preview
from ebbtide.analysis.review.review_document import (
    ChangeReport,
    DifferenceReport,
    FieldChangeReport,
    FindingReport,
    Review,
)
from tests.repository import ROOT
from tests.synth import synth_stack


@cache
def dev() -> Preview:
    """Return the preview of the repository's `dev` stack."""
    return preview_of(synth_stack(ROOT / "Pulumi.dev.yaml"))


def review_of(preview: Preview, *, findings: tuple[FindingReport, ...] | None = None) -> Review:
    """Return a review that replaces the last pool and creates the one before it.

    Args:
        preview: the stack as it would be.
        findings: broken rules; by default one of each level, and one with an exception.
    """
    cost, pool, created = preview.cost, preview.pools[-1], preview.pools[-2]
    difference = DifferenceReport(
        against="main",
        changes=(
            change(pool, "replace", field("nodeConfig.machineType", "n1-standard-4", pool.machine)),
            change(created, "create"),
            ChangeReport(
                action="update",
                type="kubernetes:yaml/v2:ConfigGroup",
                name="train-dev-queues",
                urn="urn:pulumi:dev::ebbtide::kubernetes:yaml/v2:ConfigGroup::train-dev-queues",
                pool="",
                fields=(field("objs[3].spec.cohortName", None, "train-dev", replaces=False),),
            ),
        ),
        refusals=(),
        consequences=(
            f"Pool {pool.name} is drained: its nodes go, and Jobs on them start again.",
            f"Queue {preview.queues[-1].local_queues[0]} has no capacity until the pool is back.",
        ),
        cost_before=cost.model_copy(
            update={"maximum": AmountReport(usd=cost.maximum.usd - 3.62), "on_demand": AmountReport(usd=41.1)}
        ),
        quotas_before=preview.quotas[:-1],
    )
    if findings is None:
        findings = (
            finding("capped-cost", "mandatory", "the stack", "It costs at most $26.13/h; the cap is $20."),
            finding(
                "expiring", "advisory", f"pool {created.name}", "Write `lifetime: {hours: 8}`, or protect it."
            ),
            finding(
                "approved-machines", "mandatory", f"pool {pool.name}", "It is not on the list.", "a trial"
            ),
        )
    return Review(preview=preview, difference=difference, findings=findings, verdict="fail")


def field(path: str, old: object, new: object, *, replaces: bool = True) -> FieldChangeReport:
    """Return a changed field."""
    return FieldChangeReport(path=path, old=old, new=new, replaces=replaces)


def change(pool: PoolReport, action: str, *fields: FieldChangeReport) -> ChangeReport:
    """Return a change of a pool."""
    document = {
        "action": action,
        "type": "gcp:container/nodePool:NodePool",
        "name": f"{pool.cluster}-{pool.name}",
        "urn": pool.urn,
        "pool": pool.name,
        "fields": fields,
    }
    return ChangeReport.model_validate(document)


def finding(rule: str, level: str, name: str, message: str, exception: str = "") -> FindingReport:
    """Return a finding."""
    document = {
        "rule": rule,
        "level": level,
        "resource": "",
        "name": name,
        "message": message,
        "reason": "Idle nodes are billed.",
        "source": "FinOps Framework, cost allocation",
        "exception": exception,
    }
    return FindingReport.model_validate(document)


def large(pools: int = 200) -> Review:
    """Return a review of many pools in many queues, each with a quota, a change and a finding of its own."""
    preview = dev()
    last, queue, quota = preview.pools[-1], preview.queues[-1], preview.quotas[-1]
    names = [f"a100-queued-{number:03}" for number in range(pools)]
    made = tuple(last.model_copy(update={"name": name, "queues": (f"team/{name}",)}) for name in names)
    charge = next(charge for charge in preview.cost.charges if charge.pool == last.name)
    charges = tuple(charge.model_copy(update={"pool": name, "item": f"pool {name}"}) for name in names)
    large = preview.model_copy(
        update={
            "pools": made,
            "queues": tuple(
                queue.model_copy(
                    update={
                        "name": f"team.{name}",
                        "local_queues": (f"team/{name}",),
                        "quotas": tuple(q.model_copy(update={"flavor": name}) for q in queue.quotas),
                    }
                )
                for name in names
            ),
            "quotas": tuple(
                quota.model_copy(update={"name": f"CPUS_{number}", "pools": (name,)})
                for number, name in enumerate(names)
            ),
            "cost": preview.cost.model_copy(update={"charges": charges}),
        }
    )
    findings = tuple(
        finding("work-pools-from-zero", "advisory", f"pool {name}", f"Number {number} keeps nodes.")
        for number, name in enumerate(names)
    )
    review = review_of(large, findings=findings)
    assert review.difference is not None
    changes = tuple(
        change(pool, "update", field("autoscaling.totalMaxNodeCount", 4, 10, replaces=False)) for pool in made
    )
    difference = review.difference.model_copy(update={"changes": changes})
    return review.model_copy(update={"difference": difference})


def hostile(name: str) -> Review:
    """Return a review in which names and messages are a text of an attacker."""
    preview = dev()
    pool = preview.pools[-1].model_copy(update={"name": name, "queues": (name,), "machine": name})
    queue = preview.queues[-1].model_copy(update={"local_queues": (name,), "weight": name})
    made = preview.model_copy(
        update={"pools": (*preview.pools[:-1], pool), "queues": (queue,), "project": name}
    )
    findings = (finding("a-rule", "advisory", name, name, name),)
    return review_of(made, findings=findings)
