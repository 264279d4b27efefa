"""Credential plugins and namespaces of clusters."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from components.aks.cluster import kubeconfig_text as aks_kubeconfig
from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.declaration.model.declare import declare
from ebbtide_rehearsal.cloud.control_planes import write_credential_plugins
from ebbtide_rehearsal.cloud.existing import seed_namespaces
from ebbtide_rehearsal.cloud.provider import BEHIND, CLUSTER
from ebbtide_rehearsal.cloud.store import Resource, Store
from tests.declarations import GKE, Declaration, changed

TOKEN = "rehearsal.token-1"  # noqa: S105 - of nothing


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A directory with both programs."""
    write_credential_plugins(tmp_path / "bin", TOKEN)
    return tmp_path / "bin"


def _run(
    plugins: Path, program: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    given = {"PATH": os.environ["PATH"], **environment}
    command = [str(plugins / program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=given, check=False)


def test_kubelogin_takes_workload_identity_from_the_environment(plugins: Path) -> None:
    """The login of a CI job has its identity in variables, as azure/login leaves them."""
    called = json.loads(aks_kubeconfig("train", "https://host", "QQ==", "workloadidentity"))
    arguments = called["users"][0]["user"]["exec"]["args"]
    identity = {"AZURE_CLIENT_ID": "c", "AZURE_TENANT_ID": "t", "AZURE_FEDERATED_TOKEN_FILE": "/token"}

    assert _run(plugins, "kubelogin", *arguments, **identity).returncode == 0
    assert "client ID is required" in _run(plugins, "kubelogin", *arguments).stderr
    on_github = {
        "AZURE_CLIENT_ID": "c",
        "AZURE_TENANT_ID": "t",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "t",
        "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.actions.githubusercontent.com",
    }
    assert _run(plugins, "kubelogin", *arguments, **on_github).returncode == 0
    del on_github["ACTIONS_ID_TOKEN_REQUEST_URL"]
    assert "federated token file is required" in _run(plugins, "kubelogin", *arguments, **on_github).stderr


@pytest.mark.parametrize(
    ("program", "arguments", "message"),
    [
        ("kubelogin", ("convert-kubeconfig",), "unknown command"),
        ("kubelogin", ("get-token", "--login", "azurecli"), "server-id is required"),
        ("kubelogin", ("get-token", "--login", "password", "--server-id", "s"), "not a supported login"),
        ("kubelogin", ("get-token", "--login", "devicecode", "--server-id", "s"), "wants a person"),
        ("kubelogin", ("get-token", "--login"), "needs an argument"),
        ("kubelogin", ("get-token", "--serverid", "s"), "unknown flag: --serverid"),
        (
            "kubelogin",
            ("get-token", "--login=azurecli", "--server-id=s", "--environment=Mars"),
            "no cloud environment",
        ),
        ("gke-gcloud-auth-plugin", ("--cluster",), "unknown flag: --cluster"),
    ],
)
def test_the_programs_refuse_what_the_real_ones_refuse(
    plugins: Path, program: str, arguments: tuple[str, ...], message: str
) -> None:
    """A kubeconfig that would not work in the cloud does not work here."""
    done = _run(plugins, program, *arguments)

    assert done.returncode != 0
    assert message in done.stderr
    assert TOKEN not in done.stdout


def test_the_token_is_private(plugins: Path) -> None:
    """The programs are their owner's alone."""
    assert {program.stat().st_mode & 0o777 for program in plugins.iterdir()} == {0o700}


def test_a_token_that_would_break_the_program_is_refused(tmp_path: Path) -> None:
    """No token can end the script early."""
    with pytest.raises(ValueError, match="bearer token"):
        write_credential_plugins(tmp_path, "a\nEND\nrm")


class _Server:
    """An API server that has the namespace `default`."""

    def __init__(self) -> None:
        self.objects = [("/api/v1/namespaces", "default")]

    def create(self, path: str, body: dict[str, Any], **_: str) -> None:
        """Create an object."""
        created = (path, body["metadata"]["name"])
        if created in self.objects:
            raise ApiError(409, "it exists", reason="AlreadyExists")
        self.objects.append(created)

    def close(self) -> None:
        """Do nothing."""


def _seeded(directory: Path, **fields: Any) -> list[tuple[str, str]]:
    declaration: Declaration = changed(GKE, **fields)
    store, server = Store(directory / "store"), _Server()
    (directory / "kubeconfig").write_text(json.dumps({}))
    store.put(Resource(BEHIND, "c", CLUSTER, state={"kubeconfig": str(directory / "kubeconfig")}))
    with patch.object(Api, "of_kubeconfig", return_value=server):
        seed_namespaces(declare(declaration), store, "c")
    return server.objects[1:]


def _team(namespace: str, *, create: bool = False) -> Declaration:
    return {"name": f"of-{namespace}", "namespace": {"name": namespace, "create": create}}


@pytest.mark.parametrize(
    ("fields", "objects"),
    [
        ({}, []),
        ({"teams": [_team("default"), _team("new", create=True), {"name": "vision"}]}, []),
        ({"teams": [_team("theirs")]}, [("/api/v1/namespaces", "theirs")]),
        (
            {"teams": [_team("kubeflow")]},
            [
                ("/api/v1/namespaces", "kubeflow"),
                ("/api/v1/namespaces/kubeflow/serviceaccounts", "pipeline-runner"),
            ],
        ),
        ({"teams": [_team("kubeflow")], "addons": {"pipelines": {}}}, []),
    ],
)
def test_what_the_stack_does_not_make_exists(
    fields: Declaration, objects: list[tuple[str, str]], tmp_path: Path
) -> None:
    """Namespaces that teams use and do not create, and the account of steps where Kubeflow Pipelines is."""
    assert _seeded(tmp_path, **fields) == objects
