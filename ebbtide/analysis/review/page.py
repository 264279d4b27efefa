"""HTML rendering of a review: one file without scripts, web fonts or external images."""

from functools import cache
from typing import Final

from jinja2 import Environment

from ebbtide.analysis.html import jinja_environment
from ebbtide.analysis.preview.report import AmountReport
from ebbtide.analysis.preview.words import (
    accelerator_words,
    amount_words,
    capacity_limit,
    cost_notes,
    never_zero,
    nodes_words,
    number_words,
    overrides_words,
    price_dates,
    queue_rows,
    type_words,
)
from ebbtide.analysis.recording.recording import urn_name
from ebbtide.analysis.review import diagram
from ebbtide.analysis.review.report import FailedReview, FindingReport, Review
from ebbtide.analysis.review.summary import (
    ACTIONS,
    action_counts,
    changed_lines,
    finding_counts,
    places,
    quota_rows,
    replay_rows,
    replay_title,
)

_OPEN: Final = 40
"""Maximum number of pools in a diagram that is not folded."""


def render(review: Review | FailedReview) -> str:
    """Render a review as an HTML page."""
    if isinstance(review, FailedReview):
        return _templates().get_template("failed.html").render(review=review)
    preview, difference = review.preview, review.difference
    cost = preview.cost
    changes = difference.changes if difference else ()
    return (
        _templates()
        .get_template("review.html")
        .render(
            review=review,
            preview=preview,
            cost=cost,
            difference=difference,
            changes=sorted(changes, key=lambda change: ACTIONS.index(change.action)),
            changed_lines=changed_lines,
            action_counts=action_counts(difference) if difference else "",
            finding_counts=finding_counts(review.findings),
            policy=[*finding_counts(review.findings).split(", ", 1), ""],
            rules=_rules(review),
            notes=_notes(review),
            places=places(preview),
            prices=price_dates(cost),
            cost_notes=dict(cost_notes(preview)),
            never_zero=never_zero(preview),
            others=[charge for charge in cost.charges if not charge.pool],
            most=max((pool.charge.on_demand.usd for pool in preview.pools), default=0),
            queues=queue_rows(preview.queues),
            quotas=quota_rows(review),
            replay=review.replay,
            replay_rows=replay_rows(review.replay) if review.replay else (),
            replay_title=replay_title(review.replay) if review.replay else "",
            pictures={"wide": diagram.wide(preview.pools), "narrow": diagram.narrow(preview.pools)},
            open=len(preview.pools) <= _OPEN,
        )
    )


def _rules(review: Review) -> dict[str, list[FindingReport]]:
    """Return the findings by rule, in their order."""
    rules: dict[str, list[FindingReport]] = {}
    for finding in review.findings:
        rules.setdefault(finding.rule, []).append(finding)
    return rules


def _notes(review: Review) -> dict[str, str]:
    """Return the amounts per month, the earlier amounts and their changes."""
    before, after = review.difference and review.difference.cost_before, review.preview.cost
    return {
        name: _note(getattr(before, name, None), getattr(after, name))
        for name in ("idle", "maximum", "on_demand")
    }


def _note(before: AmountReport | None, after: AmountReport) -> str:
    month = f"{after.amount.words(monthly=True)} a month"
    if before is None:
        return month
    hourly, monthly = (after.amount.change_from(before.amount, monthly=by) for by in (False, True))
    if not monthly:
        return f"unchanged; {month}"
    return f"{f'{hourly}, ' if hourly else ''}was {before.amount.words()}; {month}, {monthly}"


def _dollars(amount: AmountReport) -> str:
    return amount.amount.words()


@cache
def _templates() -> Environment:
    templates = jinja_environment(__package__ or "")
    templates.filters |= {
        "accelerators": accelerator_words,
        "amount": amount_words,
        "dollars": _dollars,
        "limit": capacity_limit,
        "node_counts": nodes_words,
        "number": number_words,
        "overrides": overrides_words,
        "type": type_words,
        "urn_name": urn_name,
    }
    return templates
