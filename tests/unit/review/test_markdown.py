"""Markdown of a review: short enough, well-formed at any length, and inert with any names."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.analysis.markdown import LIMIT
from ebbtide.analysis.review.markdown import render
from ebbtide.analysis.review.review_document import Review
from tests.unit.review.reviews import dev, finding, hostile, large, review_of

_ROW = re.compile(r"^\|.*\|$")


def _assert_well_formed(text: str) -> None:
    """Check that every fold is closed, every fence ends, and every table has its head and one width."""
    assert text.count("<details>") == text.count("</details>")
    assert text.count("```") % 2 == 0
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if lines[0].startswith("| "):
            assert set(lines[1]) <= set("|-: ")
            assert len({line.count("|") for line in lines}) == 1
            assert all(_ROW.match(line) for line in lines)


def test_verdict_and_money_come_first() -> None:
    """The first lines have the verdict and the cost, with the change; tables and their folds come later."""
    text = render(review_of(dev())).replace("&#36;", "$")
    head = text.partition("####")[0]
    assert head.startswith("### ❌ Review of ebbtide/dev: fail\n")
    assert "**$0.12/h idle** (unchanged)" in head
    assert "**$26.13/h at most** (was $22.51, +$3.62)" in head
    assert "Per month: **$88 idle** (unchanged), **$19,075 at most** (was $16,432, +$2,643)" in head
    assert "1 mandatory, 1 advisory, 1 by exception" in head


def test_everything_of_a_small_review_is_there() -> None:
    """Changes, findings, pools, queues, quotas and the picture of a small review are complete."""
    review = review_of(dev())
    text = render(review)
    _assert_well_formed(text)
    assert "not shown" not in text
    assert "- replace pool `a100-queued` (gcp.container.NodePool), forced by `nodeConfig.machineType`" in text
    assert "~~mandatory~~ `approved-machines`" in text
    assert "_Exception: a trial_" in text
    assert "| us-central1 | `PREEMPTIBLE_NVIDIA_A100_GPUS` | 0 | **10** | a100-queued |" in text
    assert '  w2["vision/t4"]\n  w2 --> p2\n' in text
    for pool in review.preview.pools:
        assert f"| `{pool.name}` | {pool.machine} " in text


def test_a_review_without_difference_has_no_changes() -> None:
    """Without an earlier version there is neither a section of changes nor a column `before`."""
    text = render(Review(preview=dev(), difference=None, findings=(), verdict="pass"))
    _assert_well_formed(text)
    assert text.startswith("### ✅ Review of ebbtide/dev: pass\n")
    assert "Changes" not in text
    assert "before" not in text
    assert "was &#36;" not in text


def test_200_pools_fit_a_comment() -> None:
    """Every pool and every finding of 200 is listed or counted."""
    review = large(200)
    text = render(review)
    assert len(text) <= LIMIT
    _assert_well_formed(text)
    for pool in review.preview.pools:
        assert f"| `{pool.name}` |" in text
        assert f"pool {pool.name}: " in text
    assert "_200 fields not shown: a comment has a maximum length." in text


def test_more_findings_than_fit_are_counted() -> None:
    """Findings are dropped from the end, with their number."""
    findings = tuple(finding("a-rule", "advisory", f"pool {n}", "x" * 300) for n in range(400))
    text = render(review_of(dev(), findings=findings))
    assert len(text) <= LIMIT
    _assert_well_formed(text)
    shown = text.count("**advisory** `a-rule`")
    assert 0 < shown < 400
    assert f"_{400 - shown} findings not shown:" in text


_HOSTILE = '<script>alert("x")</script>|`a` ``` @team *x* [l](javascript:x) \\| #1 "]; end'


@pytest.mark.parametrize(
    "name", [_HOSTILE, "a|b", "</details>", "```", "@everyone", "\n\n# t", "$x$ $", "a:x:"]
)
def test_hostile_names_are_text(name: str) -> None:
    """No name or message opens a tag, a fence, a cell or a heading, notifies a user or becomes an emoji."""
    text = render(hostile(name))
    _assert_well_formed(text)
    assert "<script" not in text
    assert "@team" not in text
    assert "@everyone" not in text
    assert "\n# " not in text
    assert "](javascript" not in text
    assert ":x:" not in re.sub(r"`[^`]*`|<code>.*?</code>", "", text)


@settings(max_examples=30)
@given(st.text(min_size=1, max_size=400))
def test_any_name_leaves_the_comment_well_formed(name: str) -> None:
    """The same of any text."""
    text = render(hostile(name))
    assert len(text) <= LIMIT
    tags = set(re.findall(r"<[^>]*>", text))
    assert tags <= {
        "<details>",
        "</details>",
        "<summary>",
        "</summary>",
        "<code>",
        "</code>",
        "<br/>",
        "<!-- -->",
    }
