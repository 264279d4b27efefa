import json
import os
import subprocess
from pathlib import Path

import pytest

from components.aks.cluster import kubeconfig_text as aks_kubeconfig
from components.gke.cluster import kubeconfig_text as gke_kubeconfig
from ebbtide_rehearsal.cloud.control_planes import write_credential_plugins

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


@pytest.mark.parametrize(
    "kubeconfig",
    [
        gke_kubeconfig("train", "host", None),
        aks_kubeconfig("train", "https://host", "QQ==", "azurecli"),
    ],
)
def test_the_programs_answer_what_our_kubeconfig_asks(plugins: Path, kubeconfig: str) -> None:
    """Called as the kubeconfig says, they print a credential of the version that it asks for."""
    called = json.loads(kubeconfig)["users"][0]["user"]["exec"]

    done = _run(plugins, called["command"], *called.get("args", ()))

    credential = json.loads(done.stdout)
    assert credential["kind"] == "ExecCredential"
    assert credential["apiVersion"] == called["apiVersion"]
    assert credential["status"] == {"token": TOKEN}


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
