"""Defaults of the workload commands."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from ebbtide.cli.config import complete, namespace_of
from ebbtide.cli.entry_point import app
from ebbtide.clients.kubernetes import Api, Object
from tests.unit.work.clusters import DEV


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, and a user without defaults."""
    folder = tmp_path / "project" / "src"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return folder.parent


def _config(*words: str) -> str:
    done = CliRunner().invoke(app, ["config", *words])
    assert done.exit_code == 0, done.output
    return done.output


def _refused(*words: str) -> str:
    done = CliRunner().invoke(app, ["config", *words])
    assert done.exit_code == 2
    return done.output


def test_the_projects_take_precedence_over_the_users(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each default is shown with its file, and the nearest file from here up is the project's."""
    _config("set", "--user", "pool=cpu-spot", "namespace=vision")
    monkeypatch.chdir(project)
    _config("set", "pool=t4-spot")
    monkeypatch.chdir(project / "src")
    shown = _config("get").splitlines()
    assert [line.partition("  (")[0] for line in shown] == ["pool = t4-spot", "namespace = vision"]
    assert str(project / ".ebbtide.json") in shown[0]
    assert "config/ebbtide/config.json" in shown[1]
    _config("unset", "pool")
    assert "pool = cpu-spot" in _config("get", "pool")
    _config("unset", "--user", "pool")
    assert _config("get", "pool") == "No default of pool is set.\n"


def test_invalid_defaults(project: Path) -> None:
    """Unknown keys, empty values and damaged files are refused with what to write instead."""
    assert "did you mean pool?" in _refused("set", "pol=t4")
    assert "is not KEY=VALUE" in _refused("set", "t4-spot")
    refused = _refused("set", "pool=")
    assert "Write a name without spaces, or remove it with `" in refused
    assert "config unset pool`" in refused
    assert "No folder from here up has a default of image" in _refused("unset", "image")
    for text in ("{", "[]", '{"pool": 1}', '{"pol": "t4"}'):
        (project / ".ebbtide.json").write_text(text)
        assert f"{project / '.ebbtide.json'}: " in _refused("get")


def test_options_take_precedence() -> None:
    """A default fills an empty option only, and a queue on the command line replaces a default pool."""
    _config("set", "pool=cpu-spot", "image=busybox")
    options = {"pool": "", "queue": "t4", "image": "", "memory": "1Gi"}
    complete(options)
    assert options == {"pool": "", "queue": "t4", "image": "busybox", "memory": "1Gi"}
    options = {"pool": "", "queue": ""}
    complete(options)
    assert options == {"pool": "cpu-spot", "queue": ""}


def test_a_job_takes_defaults(tmp_path: Path) -> None:
    """A Job without options has the default queue, namespace and image."""
    _config("set", "queue=t4", "namespace=vision")
    profile = tmp_path / "profile.json"
    profile.write_text(DEV.json())
    done = CliRunner().invoke(
        app, ["job", "train", "--profile", str(profile), "--gpus=1", "--cpu=1", "--memory=4Gi"]
    )
    assert done.exit_code == 0, done.output
    job = yaml.safe_load(done.output)
    assert job["metadata"]["namespace"] == "vision"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "t4"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["image"] == DEV.pool("t4-spot").image
    assert json.loads(profile.read_text())["version"] == "ebbtide.dev/profile/v2"


def test_a_run_without_a_cluster_names_its_other_faults(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The missing kubeconfig is one fault among those of options, code and placement."""
    monkeypatch.setenv("KUBECONFIG", str(project / "none"))
    (project / "src" / "train.py").write_text("print(1)")
    words = ["--queue=vision/t4", "--gpus=99", "--env=FOO", "--", "python", "trane.py"]
    done = CliRunner().invoke(app, ["run", "--profile", DEV.json(), *words])
    assert done.exit_code == 2
    for fault in ("no kubeconfig", "--env has 'FOO'", "did you mean train.py?", "gpus is 99"):
        assert fault in done.output
    done = CliRunner().invoke(app, ["run", "--code", str(project / "src" / "no"), "--env=FOO", "--", "true"])
    for fault in ("--env has 'FOO'", "is not a directory"):
        assert fault in done.output


def test_the_namespace_of_an_existing_workload() -> None:
    """The given namespace, then the configured one, then the context's."""
    api = Api(None, "context")
    assert namespace_of(api, "") == "context"
    _config("set", "namespace=vision")
    assert namespace_of(api, "") == "vision"
    assert namespace_of(api, "given") == "given"


class _Reviews(Api):
    """An API server that lets its user list the Jobs of some namespaces."""

    def __init__(self, *allowed: str) -> None:
        super().__init__(None)
        self._allowed = allowed

    def create(self, path: str, body: Mapping[str, Any], **query: str) -> Object:
        """Answer a SelfSubjectAccessReview."""
        assert path.endswith("/selfsubjectaccessreviews")
        assert not query
        return {"status": {"allowed": body["spec"]["resourceAttributes"]["namespace"] in self._allowed}}


def test_a_context_without_namespace_is_that_of_the_team(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The profile's only team, or the only one whose Jobs the user may list; it is named."""
    monkeypatch.setenv("EBBTIDE_PROFILE", DEV.json())
    assert namespace_of(_Reviews(), "") == "vision"
    assert capsys.readouterr().err == "Namespace vision, that of your team.\n"
    two = replace(DEV, teams=(*DEV.teams, replace(DEV.teams[0], name="speech", namespace="speech")))
    monkeypatch.setenv("EBBTIDE_PROFILE", two.json())
    assert namespace_of(_Reviews("speech"), "") == "speech"
    assert namespace_of(_Reviews("speech", "vision"), "") == "default"
    assert namespace_of(_Reviews("default", "speech"), "") == "default"
    assert namespace_of(Api(None, "other"), "") == "other"
    monkeypatch.setenv("EBBTIDE_PROFILE", "missing.json")
    assert namespace_of(_Reviews(), "") == "default"
