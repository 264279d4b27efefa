"""The document of a stack's drift, its renderings and the command."""

import html
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from ebbtide.analysis.drift import render_drift
from ebbtide.analysis.drift.differences import Maker, undo
from ebbtide.analysis.drift.drift_document import Action, Drift, FieldDrift, ResourceDrift, fingerprint
from ebbtide.cli.entry_point import app
from ebbtide.operations import drift
from ebbtide.operations.engine import backend
from tests.pages import output
from tests.repository import ROOT

_POOL = "azure-native:containerservice:AgentPool"


def _field(
    path: str, state: Any, cloud: Any, *, maker: Maker = "person", source: str = "", replaces: bool = False
) -> FieldDrift:
    return FieldDrift(path=path, state=state, cloud=cloud, maker=maker, source=source, replaces=replaces)


def _resource(type_: str, name: str, action: Action, *fields: FieldDrift, pool: str = "") -> ResourceDrift:
    return ResourceDrift(
        type=type_, name=name, urn=name, pool=pool, deleted=not fields, fields=fields, action=action
    )


CPU = _resource(
    _POOL,
    "train-cpu",
    "replace",
    _field("vmSize", "Standard_D8s_v5", "Standard_D16s_v5", replaces=True),
    _field("maxCount", 10, 99),
    _field("count", 1, 3, maker="autoscaler"),
    pool="cpu",
)
T4 = _resource(_POOL, "train-t4", "create", pool="t4")
QUEUE = _resource(
    "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue",
    "train-addons-queues-clusterqueue-vision.cpu",
    "update",
    _field("spec.stopPolicy", "None", "Hold", source="field manager kubectl-edit"),
    *(_field("status.pendingWorkloads", 0, 1, maker="controller") for _ in range(14)),
)
SYSTEM = _resource(
    _POOL,
    "train-system",
    "none",
    _field("count", 1, 2, maker="autoscaler"),
    _field("orchestratorVersion", "1.36.1", "1.36.2", maker="cloud"),
    pool="system",
)
EFFECT = (
    "Pool cpu is deleted and created again (vmSize): its nodes are drained, and work on them ends, admitted "
    "from vision/cpu."
)
RUNNING = "On pool cpu now: Job train in vision, with 4 pods."
COMMANDS = ("pulumi refresh --stack dev", "ebbtide up dev")


def _drift(*resources: ResourceDrift, effects: tuple[str, ...] = ()) -> Drift:
    return Drift(
        stack="dev",
        read=43,
        resources=resources,
        unowned=(),
        unread=(),
        consequences=effects,
        fingerprint=fingerprint(resources, ()),
    )


DRIFTED = _drift(CPU, T4, QUEUE, SYSTEM, effects=(EFFECT, RUNNING))
CLEAN = _drift(SYSTEM)


def test_the_page_shows_the_output() -> None:
    """The page's example is this document on a terminal of 80 columns."""
    written = io.StringIO()
    render_drift.render(DRIFTED, Console(file=written, width=80), COMMANDS)
    assert written.getvalue().splitlines() == "".join(output("docs/drift.md", "DRIFT dev")).splitlines()


def test_markdown_escapes_what_people_wrote() -> None:
    """A value cannot add a cell, a mention or markup to an issue."""
    hostile = _resource(_POOL, "a", "update", _field("tags", "x", "| @all <img src=x>"), pool="`a`|b")
    text = render_drift.markdown(_drift(hostile), COMMANDS)
    assert "<img" not in text
    assert "| @all" not in text
    (row,) = [line for line in text.splitlines() if "tags" in line]
    assert row.count("|") == 6


def test_what_a_refresh_takes_over_is_named_with_its_undoing() -> None:
    """The advice sets back the others alone: a held LocalQueue would stay held after a refresh."""
    held = ResourceDrift(
        type="kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue",
        name="train-addons-queues-localqueue-vision-cpu",
        urn="held",
        id="vision/cpu",
        pool="",
        deleted=False,
        fields=(_field("spec.stopPolicy", None, "HoldAndDrain").model_copy(update={"kept": True}),),
        action="none",
    )
    patch = """--namespace vision --type merge --patch '{"spec": {"stopPolicy": null}}'"""
    written = io.StringIO()
    render_drift.render(_drift(held, QUEUE), Console(file=written, width=400), COMMANDS)
    for text in map(
        html.unescape, (written.getvalue(), render_drift.markdown(_drift(held, QUEUE), COMMANDS))
    ):
        assert f"spec.stopPolicy: kubectl patch localqueue cpu {patch}" in text
        assert "no update sets them back" in text
        assert "To set the others back:" in text


_DEPLOYMENT = "kubernetes:apps/v1:Deployment"
_NODES = "gcp:container/nodePool:NodePool"
_GKE = "gcp:container/cluster:Cluster"
_FIELD = "`, and the update after the refresh sets it back to "
_LOST = "lost by a refresh, and nothing declares it: "


@pytest.mark.parametrize(
    ("type_", "path", "value", "how"),
    [
        (
            _DEPLOYMENT,
            "spec.replicas",
            1,
            """kubectl patch deployment kueue --namespace kueue-system --type merge --patch '{"spec": """,
        ),
        (
            _DEPLOYMENT,
            "spec.template.spec.containers[0].image",
            "kueue:1",
            'set it back to "kueue:1", with `kubectl edit deployment kueue --namespace kueue-system`',
        ),
        (_NODES, "upgradeSettings", {"maxSurge": 1}, f'declare `upgrade{_FIELD}{{"maxSurge": 1}}'),
        (
            _NODES,
            "nodeConfig.fastSocket.enabled",
            True,
            f'declare `overrides: {{"nodeConfig": {{"fastSocket": {{"enabled": true}}}}}}{_FIELD}true',
        ),
        (_GKE, "maintenancePolicy.recurringWindow", {}, f"declare `cloud.maintenance{_FIELD}{{}}"),
        (
            _GKE,
            "enableTpu",
            False,
            f'declare `cloud.overrides: {{"enableTpu": false}}{_FIELD}false',
        ),
        (_NODES, "nodeConfig.fastSocket", None, f"{_LOST}remove it before, in the console of the cloud, or "),
        (
            "azure-native:network:Subnet",
            "defaultOutboundAccess",
            False,
            f"{_LOST}set it back to false before, in the console of the cloud, or with `az`",
        ),
    ],
)
def test_what_undoes_a_difference(type_: str, path: str, value: object, how: str) -> None:
    """A command for an object, what to declare for a node pool or a cluster, and otherwise where to undo
    it."""
    assert undo(type_, "kueue-system/kueue", path, value).startswith(how)


@pytest.mark.parametrize(
    ("resources", "same"),
    [
        ((CPU, T4, QUEUE), True),
        ((T4, CPU.model_copy(update={"pool": "other", "urn": "b"}), QUEUE, SYSTEM), True),
        ((CPU, T4), False),
        ((CPU.model_copy(update={"action": "update"}), T4, QUEUE), False),
    ],
)
def test_the_fingerprint_is_the_shape(resources: tuple[ResourceDrift, ...], *, same: bool) -> None:
    """Names, values and differences of others do not change it; effects and numbers do."""
    assert (_drift(*resources).fingerprint == DRIFTED.fingerprint) is same
    assert CLEAN.fingerprint == ""


@pytest.mark.parametrize(("document", "status"), [(DRIFTED, 1), (CLEAN, 0)])
@pytest.mark.parametrize("format_", ["text", "markdown", "json"])
def test_the_exit_status_is_for_ci(
    document: Drift, status: int, format_: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A person's drift is exit status 1 in every format, and the document is written all the same."""

    class _Backend:
        def __init__(self, root: Path) -> None:
            assert root == ROOT

        def opened(self, name: str, _config_file: Path | None) -> str:
            return name

        def exported_by_all(self) -> list[dict[str, Any]]:
            return []

    def inspect(stack: str, _files: object, _others: object) -> Drift:
        assert stack == "dev"
        return document

    monkeypatch.setattr(backend, "Backend", _Backend)
    monkeypatch.setattr(drift, "inspect", inspect)
    out = tmp_path / "drift"
    done = CliRunner().invoke(
        app, ["drift", "dev", "--cwd", str(ROOT), "--format", format_, "--out", str(out)]
    )
    assert (done.exit_code, done.output) == (status, "")
    text = out.read_text(encoding="utf-8")
    if format_ == "json":
        assert Drift.model_validate(json.loads(text)) == document
    else:
        assert ("pulumi refresh --stack dev" in text) is bool(status)
