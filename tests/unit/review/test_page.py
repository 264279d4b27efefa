"""HTML page of a review: self-contained, well-formed, complete and inert."""

import os
import re
import subprocess
import sys
from itertools import pairwise

import pytest

from ebbtide.analysis.review.page import render
from ebbtide.analysis.review.review_document import FieldChangeReport, Review
from tests.html_pages import NAMESPACES, element_names, parsed, text_of
from tests.repository import ROOT
from tests.unit.review.reviews import dev, hostile, large, review_of


def test_page_is_self_contained() -> None:
    """The page has no script and no address to load anything from, and forbids itself to."""
    page = render(review_of(dev()))
    assert not re.search(r"<(script|link|img|iframe|object|embed)|\s(src|href|on\w+)=|url\(|@import", page)
    assert "default-src 'none'" in page


def test_page_has_headings_captions_and_a_language() -> None:
    """One first heading, a name for every section, a caption for every table, headers for its cells."""
    root = parsed(render(review_of(dev())))
    assert root.get("lang") == "en"
    assert len(root.findall(".//h:h1", NAMESPACES)) == 1
    identifiers = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(identifiers) == len(set(identifiers))
    for section in root.iterfind(".//h:section", NAMESPACES):
        assert section.get("aria-labelledby") in identifiers
    tables = root.findall(".//h:table", NAMESPACES)
    assert len(tables) >= 5
    for table in tables:
        assert table.find("h:caption", NAMESPACES) is not None
        assert table.find(".//h:tbody/h:tr/h:th[@scope='row']", NAMESPACES) is not None
    for picture in root.iterfind(".//s:svg", NAMESPACES):
        assert picture.get("role") == "img"
        assert picture.get("aria-label")


def test_rows_fit_their_tables() -> None:
    """Every row has as many cells as its table's head has columns."""
    root = parsed(render(review_of(dev())))
    tables = root.findall(".//h:table", NAMESPACES)
    assert tables
    for table in tables:
        rows = [
            [int(cell.get("colspan", "1")) for cell in row] for row in table.iterfind(".//h:tr", NAMESPACES)
        ]
        assert {sum(row) for row in rows} == {sum(rows[0])}


def test_facts_are_on_the_page() -> None:
    """Verdict, money with its change, changes with both values, findings and quotas are on the page."""
    text = text_of(parsed(render(review_of(dev()))))
    for words in (
        "Fail",
        "At most, per hour$26.13+$3.62, was $22.51; $19,075 a month, +$2,643",
        "nodeConfig.machineType forces replacement",
        "n1-standard-4",
        "Pool a100-queued is drained",
        "It costs at most $26.13/h; the cap is $20.",
        "Exception: a trial",
        "GPUS_ALL_REGIONS",
        "4 x nvidia-tesla-t4",
    ):
        assert words in text


def test_fields_that_force_a_replacement_are_first() -> None:
    """The reader asks for the cause of it."""
    review = review_of(dev())
    assert review.difference
    change = next(change for change in review.difference.changes if change.action == "replace")
    other = FieldChangeReport(path="another.field", old=1, new=2, replaces=False)
    change = change.model_copy(update={"fields": (other, *change.fields)})
    difference = review.difference.model_copy(update={"changes": (change,)})
    root = parsed(render(review.model_copy(update={"difference": difference})))
    rows = [text_of(row) for row in root.iterfind(".//h:table[@class='fields']/h:tbody/h:tr", NAMESPACES)]
    assert [("forces replacement" in row) for row in rows] == [True] * (len(rows) - 1) + [False]


def test_picture_leads_each_queue_to_its_pools() -> None:
    """The picture has a box for each queue, pool and machine, and a path from each to the next."""
    root = parsed(render(review_of(dev())))
    wide, narrow = root.findall(".//s:svg[@viewBox]", NAMESPACES)
    names = [text_of(title) for title in wide.iterfind(".//s:title", NAMESPACES)]
    assert {"vision/t4", "vision/big", "any pod", "t4-spot", "a100-queued"} <= set(names)
    pools = len(dev().pools)
    assert len(wide.findall("s:path[@class='edge']", NAMESPACES)) == 2 * pools
    assert len(narrow.findall("s:path[@class='edge']", NAMESPACES)) == pools
    squares = wide.find(".//s:g[s:title='t4-spot']/s:path[@class='off']", NAMESPACES)
    assert squares is not None
    assert squares.get("d", "").count("M") == 4


def test_picture_has_fallbacks_within_its_width() -> None:
    """A dashed path leads from a pool to its first fallback, and none without one."""
    assert "fallback" not in render(review_of(dev())).partition("</style>")[2]
    first, *others = dev().pools
    falling = first.model_copy(update={"falls_back_to": (others[0].name, others[1].name)})
    page = render(review_of(dev().model_copy(update={"pools": (falling, *others)})))
    for picture in parsed(page).iterfind(".//s:svg[@viewBox]", NAMESPACES):
        (arc,) = picture.findall("s:path[@class='fallback']", NAMESPACES)
        start, bend, *_ = (int(x) for x in re.findall(r"(\d+) \d+", arc.get("d", "")))
        assert start + 0.75 * (bend - start) < int(picture.get("viewBox", "").split()[2])
    assert "no stock" in page


def test_boxes_of_a_picture_do_not_overlap() -> None:
    """No box of a large picture overlaps another one or leaves the picture."""
    root = parsed(render(large(60)))
    pictures = root.findall(".//s:svg[@viewBox]", NAMESPACES)
    assert max(len(picture.findall(".//s:g/s:rect", NAMESPACES)) for picture in pictures) > 60
    for picture in pictures:
        _, _, width, height = map(int, picture.get("viewBox", "").split())
        columns: dict[int, list[tuple[int, int]]] = {}
        for box in picture.iterfind(".//s:g/s:rect", NAMESPACES):
            x, y, wide, high = (int(box.get(name, "")) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + wide <= width
            assert 0 <= y <= y + high <= height
            columns.setdefault(x, []).append((y, y + high))
        for boxes in columns.values():
            ordered = sorted(boxes)
            assert all(end <= start for (_, end), (start, _) in pairwise(ordered))


def test_200_pools_are_all_there() -> None:
    """Every pool, change and finding of 200 is on the page."""
    review = large(200)
    text = text_of(parsed(render(review)))
    for number, pool in enumerate(review.preview.pools):
        assert pool.name in text
        assert f"pool {pool.name}: Number {number} keeps nodes." in text


def test_a_review_without_difference_and_findings() -> None:
    """A bare review is a valid page without empty sections."""
    root = parsed(render(Review(preview=dev(), difference=None, findings=(), verdict="pass")))
    headings = [text_of(heading) for heading in root.iterfind(".//h:h2", NAMESPACES)]
    assert headings == ["Topology", "Cost of the pools", "Cloud quotas", "Queues", "Details"]


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "]]>&amp;<!--"]
)
def test_hostile_names_aretext_of(name: str) -> None:
    """Names and messages appear as text, and add no element."""
    page = render(hostile(name))
    root = parsed(page)
    assert name in text_of(root)
    assert element_names(root) == element_names(parsed(render(hostile("plain"))))


_CODE = """
import io
from pathlib import Path
from rich.console import Console
from ebbtide.analysis.preview import render_preview as preview
from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.stack_files import record_stack
from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.analysis.review import markdown, page, render_review
from ebbtide.analysis.review.baseline import Baseline
from ebbtide.analysis.review.build_review import review_of

pools = {"dev": "n2-standard-16", "dev-aks": "Standard_D16s_v5"}
for stack in pools:
    files = read_stack(Path(), stack)
    declaration = files.declaration()
    before = Baseline("before", record_stack(files))
    for pool in declaration["pools"][1:]:
        pool["labels"] = {key: "x" for key in ("zeta", "alpha", "mid", "beta")}
        pool["taints"] = [{"key": key, "value": "x", "effect": "NoSchedule"} for key in ("foo", "bar", "baz")]
    declaration["teams"].append({"name": "speech", "bucket": {}, "registry": {}})
    declaration["pools"][0]["machine"] = {"dev": "e2-standard-4", "dev-aks": "Standard_D4s_v5"}[stack]
    declaration["addons"] = {"pipelines": {}, "trainer": {}}
    declaration["pools"][1]["machine"] = pools[stack]
    if stack == "dev":
        declaration["pools"][2]["accelerator"]["count"] = 2
    after = record_stack(files.declaring(declaration), before.updates)
    assert after.refusals or stack == "dev-aks"
    document = review_of(after, before)
    print(document.model_dump_json(indent=1), markdown.render(document), page.render(document), sep="\\n")
    text = Console(file=io.StringIO(), width=100)
    render_review.render(document, text)
    shown = preview_of(after)
    preview.render(shown, text, tree=True, values=True)
    print(text.file.getvalue(), shown.model_dump_json(indent=1), sep="\\n")
"""


def test_hash_seeds() -> None:
    """Every format of a review and of a preview is the same with any order of sets and of addresses."""
    outputs: list[list[str]] = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", _CODE],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    assert outputs[0] == outputs[1]


def test_sources_have_their_code_marked() -> None:
    """A command in the source of a rule is code on the page, without backticks."""
    review = review_of(dev())
    (first, *others) = review.findings
    source = "the earlier version, with `ebbtide review --against`"
    page = render(
        review.model_copy(update={"findings": (first.model_copy(update={"source": source}), *others)})
    )
    assert "with <code>ebbtide review --against</code>" in page
