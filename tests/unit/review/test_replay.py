"""The replay of a trace in every rendering of a review."""

import io

from rich.console import Console

from ebbtide.analysis.review import markdown, page, render_review
from ebbtide.analysis.review.review_document import ReplayColumn, ReplaySummary, Review
from tests.unit.review.reviews import dev, review_of

_VERDICT = "With 8 t4-spot nodes instead of 4: 52 % less waiting, 2 % more cost."
_NOTE = "The first 500 of 9,000 jobs (2 days of 31 days) were replayed."
_MISSING = "jobs.csv was not replayed. kueue-replay needs Go, which is not installed."


def _column(name: str, waited: float | None) -> ReplayColumn:
    return ReplayColumn(
        name=name,
        usd=1193.71,
        half_waited=waited,
        most_waited=waited,
        node_hours=1070.6,
        idle_hours=304.2,
        ended=498,
        preemptions=7,
        interruptions=4,
        deadlines=32,
        missed=1,
    )


REPLAYED = ReplaySummary(
    trace="jobs.csv",
    jobs=9000,
    replayed=500,
    seeds=3,
    verdict=_VERDICT,
    columns=(_column("main", 8100.0), _column("dev", None)),
    notes=(_NOTE,),
    problem="",
)


def _renderings(replay: ReplaySummary | None) -> list[str]:
    """Return a review as Markdown, a page and text, without line breaks and escapes."""
    review = review_of(dev()).model_copy(update={"replay": replay})
    output = io.StringIO()
    render_review.render(review, Console(file=output, width=80))
    texts = (markdown.render(review).replace("&#36;", "$"), page.render(review), output.getvalue())
    return [" ".join(text.split()) for text in texts]


def test_both_columns_are_in_every_format() -> None:
    """Verdict, figures and what was not replayed are in Markdown, the page, the text and the document."""
    for text in _renderings(REPLAYED):
        for part in ("Replay of jobs.csv: 9,000 jobs, 3 seeds", _VERDICT, _NOTE, "2 h 15 min", "$1,193.71"):
            assert part in text
        assert "1 of 32" in text
    review = review_of(dev()).model_copy(update={"replay": REPLAYED})
    assert Review.model_validate_json(review.model_dump_json()).replay == REPLAYED


def test_without_the_tool_one_sentence_is_added() -> None:
    """The rest of the review is the same."""
    with_problem = _renderings(ReplaySummary.failed("jobs.csv", _MISSING))
    for text, without in zip(with_problem, _renderings(None), strict=True):
        assert _MISSING in text
        assert "waiting, median" not in text
        assert "Replay of" not in without
        assert len(text) - len(without) < 300
