"""The same input gives the same bytes."""

import os
import subprocess
import sys

from tests.repository import ROOT

_CODE = """
import io
from pathlib import Path
from rich.console import Console
from ebbtide.analysis.preview import render as preview
from ebbtide.analysis.preview.build_report import preview_of
from ebbtide.analysis.preview.stack_files import record_stack
from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.analysis.review import markdown, page, render
from ebbtide.analysis.review.baseline import Baseline
from ebbtide.analysis.review.build_report import review_of

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
    render.render(document, text)
    shown = preview_of(after)
    preview.render(shown, text, tree=True, values=True)
    print(text.file.getvalue(), shown.model_dump_json(indent=1), sep="\\n")
"""


def test_hash_seeds() -> None:
    """Every format of a review and of a preview is the same with any order of sets and of addresses."""
    outputs: list[list[str]] = []
    for seed in ("1", "2", "3"):
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
    assert outputs[0] == outputs[1] == outputs[2]
