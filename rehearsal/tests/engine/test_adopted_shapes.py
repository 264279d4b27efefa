"""Clusters of public examples: adopted, updated, let go, and all else destroyed, on the real engine."""

import json
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from ebbtide.operations.adopting import sources
from ebbtide.operations.adopting.resources import ALLOWED
from rehearsal.tests.engine.sites import Site, site_on
from rehearsal.tests.engine.terminal import Terminal
from rehearsal.tests.fake_clouds import make_found
from rehearsal.tests.unit.test_adopted_shapes import CASES, MACHINES, SHAPES
from tests.repository import ROOT
from tests.unit.adopting.gke_shapes import Document

pytestmark = [pytest.mark.engine, pytest.mark.first]

_ALWAYS: Final = ("aks CILIUM whole",)
"""A cluster that has a pool among its own inputs, and others beside it; `test_adopt.py` has pools alone."""
_PLAIN: Final = ("gke research plain", "aks CILIUM plain")
"""Whole clusters that `pulumi up` imports and updates at once."""
_NEW: Final = "gke research init"
"""A whole cluster in a project of `ebbtide init`."""
_CASES: Final = [
    *(case for case in CASES if "kueue" not in case),
    *_PLAIN,
    _NEW,
]  # there is no Kueue to compare with


@pytest.fixture
def site(tmp_path: Path, case: str, request: pytest.FixtureRequest) -> Generator[Site]:
    """A stack without a declaration."""
    for site in site_on(case.partition(" ")[0], tmp_path, request):
        (site.terminal.root / "Pulumi.dev.yaml").unlink()
        yield site


def _done(site: Site, *words: str, status: int = 0) -> str:
    actual, out = site.run(*words)
    assert actual == status, out
    return out


def _cloud(site: Site) -> dict[str, Any]:
    """Return the inputs of every resource in the cloud, by id."""
    return {item.id: item.inputs for item in site.store.resources() if item.cloud != "behind"}


def _adopted(site: Site, documents: list[Document], *options: str, new: bool = False) -> Site:
    """Write the declaration of a described cluster, in a new project or not, and create the cluster."""
    files = [site.terminal.root / f"cluster-{index}.json" for index in range(len(documents))]
    for file, document in zip(files, documents, strict=True):
        file.write_text(json.dumps(document))
    words = [word for file in files for word in ("--from", file.name)]
    words += ["--owner", "research-team", *options]
    if new:
        terminal, project = site.terminal, site.terminal.root.parent / "new"
        terminal.run(f"ebbtide init {project} --from-cluster {' '.join(words)}")
        site = replace(site, terminal=Terminal(project, terminal.environment | {"PYTHONPATH": str(ROOT)}))
        site.terminal.run("pulumi stack init dev")
    else:
        _done(site, "adopt", *words)
    found = sources.one_cluster(sources.read_files(files), None)
    make_found(found, site.declared(), site.store, site.planes)
    return site


def _declare(site: Site, declaration: Document) -> None:
    file = site.terminal.root / "Pulumi.dev.yaml"
    document = yaml.safe_load(file.read_text())
    document["config"]["ebbtide:cluster"] = declaration
    file.write_text(yaml.safe_dump(document))


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case in _ALWAYS else pytest.mark.long) for case in _CASES]
)
def test_a_public_shape(site: Site, case: str) -> None:
    """The import changes nothing, the first update replaces nothing, and the second has no change; a label
    and a pool are the only changes of the next; after an undo, a destroy keeps what was adopted."""
    cloud, name, level = case.split()
    options = ["--pools-only"] if level == "pools" else []
    site = _adopted(site, SHAPES[f"{cloud} {name}"], *options, new=case == _NEW)
    before = _cloud(site)
    if case not in _PLAIN:
        _done(site, "adopt", "--into-state")
        assert {key: item for key, item in _cloud(site).items() if key in before} == before
    plan = json.loads(site.terminal.run("pulumi preview --stack dev --json"))
    assert {step["op"] for step in plan["steps"]} <= {*ALLOWED, "create"}, plan["steps"]

    if case in _PLAIN:
        site.terminal.run("pulumi up --stack dev --yes --skip-preview")
    else:
        _done(site, "up")
    assert "Stack dev: no change." in _done(site, "up")
    updated = _cloud(site)
    assert updated.keys() >= before.keys()

    declared = site.declared()
    *_, changed = declared["pools"]
    changed["labels"] = {**changed.get("labels", {}), "stage": "two"}
    # With an account of the stack's own, its account and grants would be created as well.
    account = {key: changed[key] for key in ("serviceAccount",) if key in changed}
    declared["pools"].append({"name": "added", "machine": MACHINES[cloud], "nodes": {"max": 1}, **account})
    _declare(site, declared)
    _done(site, "up")
    after = _cloud(site)
    names = {key.rpartition("/")[2] for key in after if after[key] != updated.get(key)}
    assert names - {declared["name"]} == {"added", changed["name"]}

    assert "adopt dev --undo" in _done(site, "destroy", status=2)
    _done(site, "adopt", "--undo")
    if case in _PLAIN:
        again = _done(site, "up")
        assert ("adopted: " in again, "created: " in again) == (True, False), again
        # What is imported on AKS has defaults that the cloud has filled in, such as `enableFIPS: false`.
        assert _cloud(site).keys() == after.keys()
        _done(site, "adopt", "--undo")
    _done(site, "destroy")
    assert _cloud(site).keys() == before.keys()
