"""Comparisons that the renderings of a review share."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.analysis.review.review_document import Review
from ebbtide.analysis.review.summary import changed_lines, quota_rows, shortened
from tests.unit.review.reviews import dev, review_of

_LONG = {"pools": [{"name": f"pool-{number}", "max": 4} for number in range(20)]}


_CHANGES: list[tuple[Any, Any, tuple[list[str], list[str]]]] = [
    (4, 6, (["4"], ["6"])),
    (None, "a", ([], ["a"])),
    (True, None, (["true"], [])),
    ("a\nb\nc", "a\nB\nc\nd", (["b"], ["B", "d"])),
    (["a"], ["a", "b"], (['["a"]'], ['["a", "b"]'])),
]


@pytest.mark.parametrize(("old", "new", "changed"), _CHANGES)
def test_changed_lines(old: Any, new: Any, changed: tuple[list[str], list[str]]) -> None:
    """Short values change as a whole, longer text by its lines."""
    assert changed_lines(old, new) == changed


@pytest.mark.parametrize("as_text", [True, False], ids=["text", "object"])
def test_a_document_changes_by_its_values(*, as_text: bool) -> None:
    """A document, as an object or as text, shows the changed value alone."""
    new = json.loads(json.dumps(_LONG))
    new["pools"][7]["max"] = 10
    old, new = (json.dumps(document) if as_text else document for document in (_LONG, new))
    assert changed_lines(old, new) == (['"max": 4'], ['"max": 10'])


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_changed_lines_account_for_the_difference(old: list[str], new: list[str]) -> None:
    """Lines that go and come explain the difference of the counts; equal texts have none."""
    gone, come = changed_lines("\n".join(["x" * 99, *old]), "\n".join(["x" * 99, *new]))
    assert len(old) - len(gone) == len(new) - len(come)
    if old == new:
        assert (gone, come) == ([], [])


def test_long_documents_take_no_time() -> None:
    """Thousands of changed lines are not compared one by one."""
    old, new = ("\n".join(f"{word} {number}" for number in range(5000)) for word in ("old", "new"))
    gone, come = changed_lines(old, new)
    assert (len(gone), len(come)) == (5000, 5000)


_RULE = "object.spec.queueName != '' && object.metadata.namespace in ['vision', '{}'] && has(object.spec)"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("one two", "one three", ("one two", "one three")),
        (_RULE.format("speech"), _RULE.format("audio"), ("…'speech'] &&…", "…'audio'] &&…")),
        ("a" * 50, "a" * 49 + "b", ("…" + "a" * 13, "…" + "a" * 12 + "b")),
        ("word " * 9, "", ("word word…", "")),
    ],
)
def test_shortened_texts_show_their_difference(old: str, new: str, expected: tuple[str, str]) -> None:
    """Two long expressions with the same beginning are not cut to equal texts, nor within a word."""
    assert shortened(old, new, 14) == expected


def test_quotas_that_are_no_longer_needed_are_listed() -> None:
    """A quota of the earlier version alone is needed no longer; a new one was 0 before."""
    review = review_of(dev())
    assert review.difference is not None
    fewer = dev().model_copy(update={"quotas": dev().quotas[1:]})
    rows = {row.name: row for row in quota_rows(review.model_copy(update={"preview": fewer}))}
    assert (rows["PREEMPTIBLE_CPUS"].before, rows["PREEMPTIBLE_CPUS"].amount) == (38, 0)
    assert rows["PREEMPTIBLE_NVIDIA_A100_GPUS"].before == 0
    alone = Review(preview=dev(), difference=None, findings=(), verdict="pass")
    assert {row.before for row in quota_rows(alone)} == {None}
