"""Commands that are interrupted in each of their phases, over a cluster and an engine in memory."""

import builtins
import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.cli.consoles import ExitStatus
from ebbtide.cli.entry_point import app
from ebbtide.declaration.project.adopt_file import AdoptedResource, write_adopt_file
from ebbtide.operations.adopting import steps as adoption
from ebbtide.text import command_line
from ebbtide.values import clock
from ebbtide.values.kueue_api import ASLEEP
from tests.declarations import GKE
from tests.repository import ROOT
from tests.unit.operations.objects import node, pod
from tests.unit.operations.world import (
    CLUSTER,
    LEFTOVERS,
    OBJECTS,
    ON_CLUSTER,
    QUEUES,
    STACK,
    World,
    recorded,
    resource,
    resources_of,
)

_NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
_POOL = "gcp:container/nodePool:NodePool"
_DECLARED: dict[str, Any] = {**GKE, "pools": GKE["pools"][:2]}
_PROGRAM = (ROOT / "template" / "gke" / "__main__.py").read_text("utf-8")
_LOCATED = ["--config-file", "other stack.yaml", "--cwd", "."]


def _declaring(root: Path, **fields: Any) -> list[dict[str, Any]]:
    """Declare fields, and return the resources of a stack that is so."""
    declaration = {**_DECLARED, **fields}
    document = {"config": {"ebbtide:cluster": declaration}}
    (root / "other stack.yaml").write_text(json.dumps(document), encoding="utf-8")
    return resources_of(recorded(read_stack(root, "prod", config_file=root / "other stack.yaml")))


def _owning(root: Path) -> World:
    return World([STACK, *OBJECTS, CLUSTER], ON_CLUSTER, LEFTOVERS, root)


def _sharing(root: Path) -> World:
    return World([STACK, *OBJECTS], ON_CLUSTER, (), root)


def _asleep(root: Path) -> World:
    asleep = {"metadata": {"name": "cpu", "annotations": {ASLEEP: "None"}}, "spec": {"stopPolicy": "Hold"}}
    world = World([STACK, *OBJECTS, CLUSTER], {**ON_CLUSTER, f"{QUEUES}/cpu": asleep}, (), root)
    world.stopped = True
    return world


def _expired(root: Path) -> World:
    """An expired stack, and two expired resources that no state has."""
    stack = {**STACK, "outputs": {"expires": "2026-11-20T08:00Z"}}
    lost = [replace(item, id=f"lost-{item.id}", expires="2026-11-20t08-00z") for item in LEFTOVERS]
    return World([stack, *OBJECTS, CLUSTER], ON_CLUSTER, lost, root)


def _replacing(root: Path) -> World:
    """A pool that becomes on demand, with a pod on it, after an update that was killed."""
    before = _declaring(root)
    _declaring(root, pools=[GKE["pools"][0], {**GKE["pools"][1], "capacity": "on-demand"}])
    (killed,) = (item for item in before if item["type"] == _POOL and item["urn"].endswith("train-system"))
    on_cluster = {
        "/api/v1/nodes/old": node("old", "spot"),
        "/api/v1/pods/train-0": pod("train-0", node="old"),
    }
    on_cluster["/api/v1/nodes/old"]["metadata"]["labels"] = {"cloud.google.com/gke-nodepool": "cpu"}
    world = World([STACK, *(item for item in before if item != killed)], on_cluster, (), root)
    world.deployment["pending_operations"] = [{"type": "creating", "resource": killed}]
    return world


def _ageing(root: Path) -> World:
    """A stack that expires four hours after its first update."""
    return World([STACK, *_declaring(root, lifetime={"hours": 4})], {}, (), root)


def _adoptable(root: Path) -> World:
    """A stack without resources whose file names two pools that exist."""
    pools = [AdoptedResource(_POOL, f"train-{name}", f"p/z/train/{name}") for name in ("system", "cpu")]
    write_adopt_file(root / "adopt.prod.json", pools)
    _declaring(root, adopt="adopt.prod.json")
    return World([STACK], {}, (), root)


def _adopted(root: Path) -> World:
    """A stack with an adopted pool and an adopted queue, which the first update has changed."""
    _declaring(root)
    kind, found = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", {"spec": {"cohortName": "theirs"}}
    entries = [
        AdoptedResource(_POOL, "train-cpu", "p/z/train/cpu"),
        AdoptedResource(kind, "cpu", "cpu", found),
    ]
    write_adopt_file(root / "adopt.prod.json", entries)
    adopted = [resource(item.type, item.name, id=item.id, importID=item.id) for item in entries]
    queue = {"kind": "ClusterQueue", "metadata": {"name": "cpu"}, "spec": {"cohortName": "ours"}}
    return World([STACK, *adopted], {f"{QUEUES}/c": queue}, (), root)


def _described(root: Path) -> World:
    """A cluster that `gcloud` describes, and no stack."""
    (root / "other stack.yaml").unlink()
    pools = [
        {
            "name": "cpu",
            "config": {"machineType": "n2-standard-8", "spot": True},
            "autoscaling": {"enabled": True, "totalMaxNodeCount": 4, "locationPolicy": "ANY"},
            "locations": ["us-central1-a"],
        }
    ]
    link = "https://container.googleapis.com/v1/projects/acme-ml/zones/us-central1-a/clusters/train"
    cluster = {"name": "train", "location": "us-central1-a", "selfLink": link, "nodePools": pools}
    (root / "cluster.json").write_text(json.dumps(cluster), encoding="utf-8")
    return World([], {}, (), root)


_Start = Callable[[Path], World]
_CASES: Sequence[tuple[list[str], _Start]] = [
    (["destroy", "prod", "--yes", *_LOCATED], _sharing),
    (["destroy", "--stack", "prod", "--yes", "--keep-volumes", *_LOCATED], _sharing),
    (["destroy", "prod", "-y", *_LOCATED], _owning),
    (["destroy", "prod", "--keep-volumes", "--delete-orphans", "--yes", *_LOCATED], _owning),
    (["sleep", "prod", "--now", *_LOCATED], _owning),
    (["wake", "prod", *_LOCATED], _asleep),
    (["reap", "pr*", "--yes", "--delete-data", "--google-project", "acme-ml", "--cwd", "."], _expired),
    (["up", "prod", "--yes", "--drain-timeout", "0s", *_LOCATED], _replacing),
    (["extend", "prod", "--hours", "4", "--yes", *_LOCATED], _ageing),
    (["adopt", "prod", "--into-state", "--yes", *_LOCATED], _adoptable),
    (["adopt", "prod", "--undo", "-y", *_LOCATED], _adopted),
    (["adopt", "prod", "--from", "cluster.json", "--pools-only", "--cwd", "."], _described),
]


def _world(start: _Start, root: Path, patch: pytest.MonkeyPatch) -> World:
    for file in root.glob("*.*"):
        file.unlink()
    (root / "__main__.py").write_text(_PROGRAM, encoding="utf-8")
    (root / "Pulumi.yaml").write_text("name: shop\nruntime: python\n", encoding="utf-8")
    (root / "other stack.yaml").write_text("config: {}\n", encoding="utf-8")
    world = start(root)
    world.serve(patch)

    def written(file: Path, resources: Sequence[AdoptedResource]) -> None:
        world.effect("the files of stack prod", lambda: write_adopt_file(file, resources))

    def are_written(*words: Any) -> tuple[Path, Path]:
        files = write_files(*words)
        world.turn()
        return files

    patch.setattr(adoption, "write_adopt_file", written)
    write_files = _WRITE_FILES
    patch.setattr(adoption, "write_files", are_written)
    return world


_WRITE_FILES = adoption.write_files


def _run(words: list[str]) -> tuple[str, list[str], bool]:
    """Return the output of a command, the words of the one that it prints to continue, and whether it was
    wrong."""
    ended = CliRunner().invoke(app, words)
    lines = re.findall(r"Continue with: (.*)$", ended.output, re.MULTILINE)
    assert len(lines) <= 1, ended.output
    start = len(shlex.split(command_line()))
    return ended.output, shlex.split(lines[0])[start:] if lines else [], ended.exit_code == ExitStatus.WRONG


@pytest.mark.parametrize(("words", "start"), _CASES)
def test_what_is_said_has_happened_and_its_command_continues(
    words: list[str], start: _Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted around each effect, and again after the last one, a command names the effects, and
    what it prints ends where it would have ended, without an error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(clock, "now", lambda: _NOW)
    whole = _world(start, tmp_path, monkeypatch)
    last, nothing, _ = _run(words)
    possible, turns, reached = {*whole.done} - {""}, -whole.turns - 1, whole.reached
    assert whole.done, last
    assert not nothing

    def interrupted(turn: int, again: int = -1) -> int:
        """Interrupt the command, and what continues it, at these turns; return the last of the latter's."""
        world = _world(start, tmp_path, monkeypatch)
        world.turns = turn
        before = world.reached
        output, continuation, _ = _run(words)
        message = output[output.rindex("Interrupted: ") :] if "Interrupted: " in output else ""
        if message and continuation:
            unnamed = [fact for fact in world.done if fact not in message]
            assert not unnamed, "which has begun"
        named = [fact for fact in possible if fact in message]
        assert len(named) <= len({*world.done} - {""}) + 1, "but for the interrupted one"
        if "nothing was changed" in message:
            assert world.reached == before
        world.turns = again
        while continuation:
            output, continuation, is_wrong = _run(continuation)
            assert not is_wrong, output
        if "is listed by: gcloud compute disks list" in output:
            world.cloud = whole.cloud
        assert world.reached == reached, output
        return -world.turns - 2

    ends = [interrupted(turn) for turn in range(turns)]
    interrupted(turns // 2, ends[turns // 2])


@pytest.mark.parametrize(
    "words",
    [
        "up",
        "destroy dev",
        "destroy",
        "sleep",
        "wake",
        "extend --hours 2",
        "reap --yes",
        "adopt",
        "adopt --undo",
    ],
)
def test_nothing_is_changed_before_a_command_is_loaded(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that changes something says that nothing was changed, also while it is still imported."""
    real = builtins.__import__

    def imported(name: str, *rest: Any) -> object:
        if name.startswith(("ebbtide.operations.", "ebbtide.clients.")):
            raise KeyboardInterrupt
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", imported)
    ended = CliRunner().invoke(app, words.split())
    assert ended.output.startswith("Interrupted: nothing was changed. Continue with: "), ended.output
    assert ended.exit_code == ExitStatus.INTERRUPTED
