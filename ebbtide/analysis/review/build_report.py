"""Build the document of a review from recordings."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from ebbtide.analysis.policy.settings import Policy
from ebbtide.analysis.preview.build_report import preview_of
from ebbtide.analysis.preview.report import FindingReport, Preview
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import masked
from ebbtide.analysis.review.baseline import Baseline
from ebbtide.analysis.review.consequences import consequences, new_pools_beside, refusals
from ebbtide.analysis.review.difference import Change, compare, deleted
from ebbtide.analysis.review.report import (
    ChangeReport,
    DifferenceReport,
    FieldChangeReport,
    ReplaySummary,
    Review,
)
from ebbtide.declaration.project.extends import Declaration

_PROVIDER: Final = "pulumi:providers:"


def review_of(
    after: Recording,
    before: Baseline | None = None,
    *,
    warnings: Iterable[str] = (),
    errors: Iterable[str] = (),
    policy: Policy | None = None,
    declaration: Declaration | None = None,
    replay: ReplaySummary | None = None,
) -> Review:
    """Build the document of a review.

    Args:
        after: the recording of the program.
        before: the earlier version to compare with, if any.
        warnings: warnings besides the program's.
        errors: errors of other stacks that extend this one's file.
        policy: the stack's policy; the default one if omitted.
        declaration: the stack's declaration, for the files that it extends.
        replay: the replay of a trace, if any.
    """
    old = (before and before.recording) or Recording(project=after.project, stack=after.stack)
    changes = compare(old, after, deployed=before.deployed) if before else ()
    others = tuple(errors)
    preview = preview_of(
        after,
        warnings,
        policy,
        declaration=declaration,
        errors=others,
        earlier_policy=before.policy if before else None,
        deleted=deleted(changes),
    )
    difference = _difference(before, old, after, changes, preview) if before else None
    return Review(
        preview=preview,
        difference=difference,
        replay=replay,
        findings=preview.findings,
        verdict="fail" if others else _verdict(difference, preview.findings),
    )


def _difference(
    before: Baseline, old: Recording, after: Recording, changes: Sequence[Change], preview: Preview
) -> DifferenceReport:
    with before.prices():
        old_preview = preview_of(old)
    beside = tuple(message.text for message in new_pools_beside(after))
    if before.recording is None:
        effects = (f"Stack {after.stack} does not exist at {before.name}: everything is created.",)
    else:
        refused = (message.urn for message in after.refusals)
        effects = (*beside, *consequences(old_preview, preview, changes, refused))
    return DifferenceReport(
        against=before.name,
        changes=_changes(changes, old_preview, preview),
        refusals=tuple(text for text in refusals(after, changes) if text not in beside),
        consequences=effects,
        cost_before=old_preview.cost,
        quotas_before=old_preview.quotas,
    )


def _changes(changes: Iterable[Change], before: Preview, after: Preview) -> tuple[ChangeReport, ...]:
    pools = {pool.urn: pool.name for pool in (*before.pools, *after.pools) if not pool.inline}
    return tuple(
        ChangeReport(
            action=change.action,
            type=change.resource.type,
            name=change.resource.name,
            urn=change.resource.urn,
            pool=pools.get(change.resource.urn, ""),
            fields=tuple(
                FieldChangeReport(
                    path=item.path, old=masked(item.old), new=masked(item.new), replaces=item.replaces
                )
                for item in change.fields
            ),
        )
        for change in changes
        if not change.resource.type.startswith(_PROVIDER)
    )


def _verdict(
    difference: DifferenceReport | None, findings: Iterable[FindingReport]
) -> Literal["pass", "warn", "fail"]:
    """Return the verdict of a review; a finding with a declared exception does not count."""
    levels = {finding.level for finding in findings if not finding.exception}
    if "mandatory" in levels or (difference and difference.refusals):
        return "fail"
    ends_work = difference is not None and any(
        change.action in ("replace", "delete") for change in difference.changes
    )
    return "warn" if levels or ends_work or (difference and difference.consequences) else "pass"
