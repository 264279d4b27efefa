"""Prerequisites of a rehearsal, its engine, the settings of its fake cloud, and a rehearsal that stays."""

import os
import platform
import subprocess
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest
import yaml
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc
from pulumi.runtime.settings import Settings

from ebbtide.analysis.preview.stack_files import PLACEHOLDER, read_stack
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal import RehearsalError
from ebbtide_rehearsal.cloud.pools import locations
from ebbtide_rehearsal.cloud.running import CloudSettings, RunningCloud
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.engine import Shell
from ebbtide_rehearsal.rehearse import needs
from ebbtide_rehearsal.scenarios.model import Scenario, built_in, read
from ebbtide_rehearsal.stay import Stay, copy_project
from tests.declarations import GKE, changed
from tests.repository import ROOT

UP: dict[str, Any] = {"do": "up"}


def _changing(addons: object, **more: object) -> dict[str, Any]:
    """A step that changes the add-ons."""
    return UP | {"change": {"addons": addons}} | more


def _optional_tools(addons: object, *steps: dict[str, Any]) -> set[str]:
    """Return the optional tools that a scenario needs."""
    scenario = Scenario.model_validate(
        {"title": "It is tried.", "declaration": {**GKE, "addons": addons}, "steps": [UP, *steps]}
    )
    tools = needs(read_stack(ROOT, "dev"), scenario, ROOT)
    optional = {
        "jobset",
        "trainer-controller-manager",
        "katib-controller",
        "workflow-controller",
        "argo-crds",
    }
    return optional & set(tools)


@pytest.mark.parametrize(
    ("addons", "steps", "expected"),
    [
        ({}, [], set[str]()),
        ({"trainer": {}}, [], {"jobset", "trainer-controller-manager"}),
        ({"katib": {}}, [], {"katib-controller"}),
        ({}, [_changing({"katib": {}})], {"katib-controller"}),
        ({"katib": {}}, [_changing(None)], {"katib-controller"}),
        ({}, [_changing("katib", refused="addons")], set[str]()),
    ],
    ids=["none", "trainer", "katib", "later", "no longer", "with a fault"],
)
def test_what_some_declaration_can_use_is_asked_for(
    addons: object, steps: list[dict[str, Any]], expected: set[str]
) -> None:
    """The declaration of every step counts."""
    assert _optional_tools(addons, *steps) == expected


def test_a_scenario_of_another_stack_is_asked_for_its_own() -> None:
    """Not the stack's that the command names."""
    home = ROOT / "examples" / "aks-spot"
    scenario = read(home / "rehearsal.yaml")
    assert scenario.stack is not None
    assert "katib-controller" not in needs(read_stack(ROOT, "dev"), scenario, home)
    assert "katib-controller" in needs(read_stack(ROOT, "dev"), read(built_in()["changes"]), ROOT)


@pytest.mark.parametrize(
    ("system", "stack", "message"),
    [
        ("Darwin", "dev", "DNS endpoint does not run on macOS"),
        ("Windows", "dev-aks", "does not run on Windows"),
    ],
)
def test_another_platform_is_refused(
    system: str, stack: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes before a tool is built; on macOS, a stack on AKS is rehearsed."""
    monkeypatch.setattr(platform, "system", lambda: system)
    scenario = Scenario.model_validate({"title": "It is tried.", "steps": [UP]})
    with pytest.raises(RehearsalError, match=message):
        needs(read_stack(ROOT, stack), scenario, ROOT)
    if system == "Darwin":
        assert needs(read_stack(ROOT, "dev-aks"), scenario, ROOT)


def test_a_release_ahead_of_its_pin_is_refused() -> None:
    """Nothing is built for an add-on's version that no rehearsal has."""
    ahead = {"version": "9.0.0", "digest": "sha256:" + "0" * 64}
    with pytest.raises(RehearsalError, match=r"Kueue 9\.0\.0, and a .* without addons\.kueue\.version"):
        _optional_tools({"kueue": ahead})


def test_argo_is_asked_for_where_a_pipeline_runs() -> None:
    """Argo's controller, which takes minutes to build, is built only for scenarios with a pipeline."""
    run = {"do": "run-pipeline", "program": "pipeline.py"}
    assert _optional_tools({}, run) == {"workflow-controller", "argo-crds"}


def test_a_fault_is_said_before_anything_is_built() -> None:
    """Tools can take a quarter of an hour."""
    with pytest.raises(DeclarationError):
        _optional_tools({"katibb": {}})


def test_the_cloud_knows_what_it_was_told(tmp_path: Path) -> None:
    """Settings are written to a file, with the tools; a tool without an entry is an error."""
    settings = CloudSettings(60, {"pools": []}, {"etcd": "/bin/etcd"})
    settings.write(tmp_path)
    read_back = CloudSettings.read(tmp_path)
    assert read_back == settings
    assert read_back.path("etcd") == Path("/bin/etcd")
    with pytest.raises(KeyError):
        read_back.path("jobset")


import_module("ebbtide_rehearsal.engine")  # sets the options of the SDK's channels


class _Engine(engine_pb2_grpc.EngineServicer):
    def Log(self, request: engine_pb2.LogRequest, context: grpc.ServicerContext) -> Empty:  # noqa: N802
        del request, context
        return Empty()


@contextmanager
def _engine(port: int = 0) -> Generator[int]:
    """An engine's log, at a port."""
    server = grpc.server(ThreadPoolExecutor(1))
    engine_pb2_grpc.add_EngineServicer_to_server(_Engine(), server)
    try:
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        yield bound
    finally:
        server.stop(0).wait()


def _log_of_a_program(port: int) -> Any:
    """The SDK's client for the engine's log."""
    settings: Any = Settings("project", "stack", engine=f"127.0.0.1:{port}")
    return settings.engine.Log


def test_an_engine_at_the_port_of_an_earlier_one_is_reached() -> None:
    """Although a program of the earlier one was refused there a moment ago."""
    message = engine_pb2.LogRequest()
    with _engine() as port:
        log = _log_of_a_program(port)
        log(message)
    with pytest.raises(grpc.RpcError, match="Connection refused"):
        log(message)
    with _engine(port):
        _log_of_a_program(port)(message)


def test_a_project_is_copied_for_a_rehearsal_that_stays(tmp_path: Path) -> None:
    """Stack files are copied without the engine's lines and secrets; everything else is linked."""
    root = tmp_path / "mine"
    (root / "stacks").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "Pulumi.yaml").write_text("name: mine\nruntime: python\nstackConfigDir: stacks\n")
    (root / "__main__.py").touch()
    (root / "stacks" / "Pulumi.dev.yaml").write_text(
        "# Kept.\nencryptionsalt: v1:a=\nconfig:\n  mine:token:\n    secure: v1:b=\n  mine:name: c\n"
    )
    project = tmp_path / "copy"
    copied = copy_project(read_stack(root, "dev"), project)
    assert copied == project / "stacks"
    assert (copied / "Pulumi.dev.yaml").read_text() == (
        f"# Kept.\nconfig:\n  mine:token: '{PLACEHOLDER}'\n  mine:name: c\n"
    )
    assert sorted(item.name for item in project.iterdir()) == ["Pulumi.yaml", "__main__.py", "stacks"]
    assert (project / "__main__.py").is_symlink()


def test_a_rehearsal_stays_until_its_time_limit(tmp_path: Path) -> None:
    """Meanwhile the cloud gets the regions of a changed stack file."""
    region = {"name": "us-new1", "zones": ["us-new1-a"]}
    declared = changed(GKE, cloud={**GKE["cloud"], "regions": [region]})
    (tmp_path / "Pulumi.yaml").write_text("name: mine\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {"ebbtide:cluster": declared}}))
    store = Store(tmp_path / "store")
    cloud = cast("RunningCloud", SimpleNamespace(store=store, check=lambda: None))
    shell = Shell((), {}, {})
    Stay("dev", tmp_path, tmp_path, shell, cloud, tmp_path / "env.sh").wait(timedelta(seconds=1))
    assert "us-new1" in locations(store, CloudKind.GKE).regions()


def test_exports_set_a_shell(tmp_path: Path) -> None:
    """Values with blanks and quotes arrive; variables of the user's own clouds are gone."""
    shell = Shell((tmp_path,), {"A": "it's a b"}, {})
    lines = "\n".join(shell.exports())
    command = f'{lines}\nprintf "%s|%s|%s" "$A" "$PULUMI_ACCESS_TOKEN" "${{PATH%%:*}}"'
    environment = {"PATH": os.environ["PATH"], "PULUMI_ACCESS_TOKEN": "mine"}
    done = subprocess.run(
        ["/bin/sh", "-c", command], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"it's a b||{tmp_path}"
