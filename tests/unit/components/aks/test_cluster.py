"""The AKS cluster and its kubeconfig."""

import base64
import json
from typing import Any

import pytest
import yaml

from components.aks.cluster import CredentialsError, server_and_authority
from ebbtide.analysis.recording.recording import Recording, Resource
from tests.declarations import AKS, changed
from tests.synth import synth


def waited_for(recording: Recording, resource: Resource) -> set[str]:
    """Logical names of what a resource waits for."""
    return {recording[urn].name for urn in resource.dependencies}


@pytest.mark.parametrize(("zone", "server"), [("system", None), ("none", "public")])
def test_a_kubeconfig_has_the_public_name_without_a_zone(zone: str, server: str | None) -> None:
    """A private API server has a public name only without a private DNS zone."""
    access = {"private": True, "privateDnsZone": zone}
    recording = synth(changed(AKS, cloud=AKS["cloud"] | {"access": access}))
    (call,) = [call for call in recording.invocations if "UserCredentials" in call.token]
    assert call.args.get("serverFqdn") == server


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
