"""The kubeconfig: server and authority from AKS, everything else from here, no credential from anywhere."""

import base64
import json
from typing import Any

import pytest
import yaml

from components.aks.cluster import CredentialsError, kubeconfig_text, server_and_authority
from ebbtide.analysis.recording.values import Secret
from tests.declarations import AKS, changed
from tests.synth import synth

GIVEN = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "train",
    "clusters": [
        {
            "name": "train",
            "cluster": {
                "server": "https://train-x.hcp.eastus.azmk8s.io:443",
                "certificate-authority-data": "QUJD",
            },
        }
    ],
    "contexts": [{"name": "train", "context": {"cluster": "train", "user": "u"}}],
    "users": [{"name": "u", "user": {"token": "do-not-copy", "client-key-data": "do-not-copy"}}],
}


def encoded(text: str) -> str:
    """Return a kubeconfig as in the response of the credentials call."""
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("dump", [yaml.safe_dump, json.dumps])
def test_server_and_authority_are_all_that_is_read(dump: Any) -> None:
    """AKS writes YAML, which JSON is too; its user and credentials are dropped."""
    parsed = server_and_authority(encoded(dump(GIVEN)))
    assert parsed == ("https://train-x.hcp.eastus.azmk8s.io:443", "QUJD")


@pytest.mark.parametrize(
    "given",
    [
        "%%%",
        encoded("clusters: ["),
        encoded(""),
        encoded("clusters: []"),
        encoded("clusters: [{cluster: {server: https://x}}]"),
        encoded("- a list"),
        encoded("secret-token"),
    ],
)
def test_what_is_no_kubeconfig_is_refused_and_not_shown(given: str) -> None:
    """The message says what to look at, and holds nothing of what was given."""
    with pytest.raises(CredentialsError, match=r"az aks get-credentials") as refused:
        server_and_authority(given)
    assert "secret-token" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("login", ["azurecli", "workloadidentity"])
def test_kubelogin_is_asked_for_a_token_when_one_is_needed(login: str) -> None:
    """The kubeconfig uses kubelogin with a non-interactive login, unlike the one that AKS returns."""
    config = json.loads(kubeconfig_text("train", "https://x:443", "QUJD", login))
    assert config["clusters"] == [
        {"name": "train", "cluster": {"server": "https://x:443", "certificate-authority-data": "QUJD"}}
    ]
    assert config["contexts"] == [{"name": "train", "context": {"cluster": "train", "user": "train"}}]
    assert config["current-context"] == "train"
    (user,) = config["users"]
    assert list(user["user"]) == ["exec"]
    command = user["user"]["exec"]
    assert command["apiVersion"] == "client.authentication.k8s.io/v1beta1"
    assert [command["command"], *command["args"]] == [
        "kubelogin",
        "get-token",
        "--login",
        login,
        "--server-id",
        "6dae42f8-4368-4678-94ff-3960e28e3630",
        "--environment",
        "AzurePublicCloud",
    ]
    assert command["interactiveMode"] == "Never"


def test_the_declared_login_reaches_the_kubeconfig() -> None:
    """The declared login is in the stack's secret output and in the Kubernetes provider's input."""
    declaration = changed(AKS, cloud=AKS["cloud"] | {"access": {"login": "workloadidentity"}})
    recording = synth(declaration)
    output = recording.outputs["kubeconfig"]
    assert isinstance(output, Secret)
    args = json.loads(str(output.value))["users"][0]["user"]["exec"]["args"]
    assert args[args.index("--login") + 1] == "workloadidentity"
    (provider,) = recording.of_type("pulumi:providers:kubernetes")
    given = provider.inputs["kubeconfig"]
    assert isinstance(given, Secret)
    assert given.value == output.value


def test_the_server_is_the_one_that_aks_names() -> None:
    """The server's host name is the one that AKS returns."""
    recording = synth(AKS)
    (call,) = [item for item in recording.invocations if "Credentials" in item.token]
    listed: Any = call.answer["kubeconfigs"]
    output = recording.outputs["kubeconfig"]
    assert isinstance(output, Secret)
    (entry,) = json.loads(str(output.value))["clusters"]
    cluster = entry["cluster"]
    actual = (cluster["server"], cluster["certificate-authority-data"])
    assert actual == server_and_authority(str(listed[0]["value"]))
