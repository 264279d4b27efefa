"""Scrubbing of recorded provider calls."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.analysis.recording.scrubbing import Scrubber
from ebbtide.analysis.recording.values import UNKNOWN, Secret

_PEM = "-----BEGIN {0}-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n-----END {0}-----\n"
_RANDOM = base64.b64encode(bytes(range(3, 250, 4))).decode()
_JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.sFlKxwRJSMeKKF2QT4fwpMeJf36POk6y"
_SUBSCRIPTION = "4f1c2a9e-77b0-4a52-9c1d-5e6f7a8b9c0d"
_CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
_KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "train",
    "clusters": [
        {"cluster": {"server": "https://k8s.invalid", "certificate-authority-data": "LS0tLS1CRUdJTg"}}
    ],
    "users": [{"user": {"client-key-data": "S0VZLWRhdGE", "token": "plain-token"}}],
}

_SECRETS: dict[str, tuple[Any, list[str]]] = {
    "secret": ({"value": Secret("s3cr3t-of-pulumi")}, ["s3cr3t-of-pulumi"]),
    "secret object": ({"keys": Secret([{"value": "inner-s3cr3t"}])}, ["inner-s3cr3t"]),
    "secret elsewhere": ([Secret("s3cr3t-again"), "failed with s3cr3t-again"], ["s3cr3t-again"]),
    "certificate": (
        {"pem": _PEM.format("CERTIFICATE")},
        ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"],
    ),
    "private key": ({"text": f"x {_PEM.format('RSA PRIVATE KEY')} y"}, ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"]),
    "cut private key": ({"text": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN"}, ["MIIEvQIBADAN"]),
    "encoded certificate": (
        {"caData": base64.b64encode(_PEM.format("X").encode()).decode()},
        ["LS0tLS1CRUdJTi"],
    ),
    "ssh key": ({"keyData": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 ann@laptop"}, ["AAAAB3", "ann@laptop"]),
    "kubeconfig as JSON": (
        {"value": json.dumps(_KUBECONFIG)},
        ["LS0tLS1CRUdJTg", "S0VZLWRhdGE", "plain-token"],
    ),
    "kubeconfig as YAML": (
        {"value": "current-context: train\nusers:\n- user: {client-key-data: S0VZLWRhdGE, token: abc123}"},
        ["S0VZLWRhdGE", "abc123"],
    ),
    "encoded kubeconfig": (
        {"value": base64.b64encode(json.dumps(_KUBECONFIG).encode()).decode()},
        ["eyJhcGlWZXJzaW9u"],
    ),
    "client key": ({"masterAuth": {"clientKey": "c2hvcnQ"}}, ["c2hvcnQ"]),
    "password": ({"adminPassword": "hunter2-and-more"}, ["hunter2"]),
    "token of a provider": ({"accessToken": "ya29.a0AfH6SMBx-y_z"}, ["a0AfH6SMB"]),
    "Google token in a text": ({"error": "denied for ya29.c.b0AT_long-token here"}, ["b0AT_long"]),
    "Google API key": ({"error": "key=AIzaSyA1234567890abcdefghijklmnopqrstuv"}, ["SyA1234567890"]),
    "bearer": ({"error": "Authorization: Bearer abcdef-123456"}, ["abcdef-123456"]),
    "JWT": ({"log": f"token {_JWT} expired"}, ["eyJzdWIi", "sFlKxwRJ"]),
    "SAS token": (
        {"url": "https://a.blob.core.windows.net/c?sv=2026-01-01&se=2027&sig=aB%2Fc3dE%3D&sp=rl"},
        ["aB%2Fc3dE"],
    ),
    "signed URL": ({"url": "https://storage.googleapis.com/b/o?X-Goog-Signature=8f3a2b"}, ["8f3a2b"]),
    "connection string": (
        {"text": f"DefaultEndpointsProtocol=https;AccountName=data;AccountKey={_RANDOM};EndpointSuffix=x"},
        [_RANDOM[:20]],
    ),
    "short connection string": ({"text": "Server=db;User=sa;Password=pw-1234;"}, ["pw-1234"]),
    "instrumentation key": ({"text": "InstrumentationKey=0f0f-1e1e;Endpoint=x"}, ["0f0f-1e1e"]),
    "account key": ({"keys": [{"keyName": "key1", "value": _RANDOM}]}, [_RANDOM[:20]]),
    "client secret": ({"error": "AADSTS: abc8Q~dEfGhIjKlMnOpQrStUvWxYz0123456789ab"}, ["dEfGhIjKlMn"]),
    "form": ({"error": 'POST {"client_secret": "s3cret-in-json", "x": 1}'}, ["s3cret-in-json"]),
    "credentials in a URL": ({"url": "https://ann:pa55word@registry.example/x"}, ["ann:", "pa55word"]),
    "GitHub token": ({"text": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}, ["0123456789abc"]),
    "Pulumi token": ({"text": f"pul-{'0a1b2c3d' * 5}"}, ["0a1b2c3d0a"]),
    "AWS key": ({"text": "AKIAIOSFODNN7EXAMPLE"}, ["IOSFODNN7"]),
    "subscription": ({"scope": f"/subscriptions/{_SUBSCRIPTION}/resourceGroups/train"}, [_SUBSCRIPTION]),
    "subscription in a key": ({f"/subscriptions/{_SUBSCRIPTION}/x": {}}, [_SUBSCRIPTION]),
    "tenant in capitals": ({"tenantId": _SUBSCRIPTION.upper()}, [_SUBSCRIPTION.upper()]),
    "project": (
        {"project": "acme-ml", "bucket": "acme-ml-data", "pool": "acme-ml.svc.id.goog"},
        ["acme-ml"],
    ),
    "project in a path": (["projects/acme-ml/locations/x", "the project acme-ml is full"], ["acme-ml"]),
    "project of an account": ({"email": "train@acme-ml.iam.gserviceaccount.com"}, ["acme-ml"]),
    "project number": (
        {"a": "projects/123456789012/x", "b": "service-123456789012@gcp-sa-gkenode.iam.gserviceaccount.com"},
        ["123456789012"],
    ),
    "unique id": ({"uniqueId": "108945123456789012345"}, ["108945123456789012345"]),
    "user": ({"member": "user:ann.lee@acme.example"}, ["ann", "acme.example"]),
    "domain": ({"member": "domain:acme.example"}, ["acme"]),
    "tenant's domain": ({"text": "ann@acmeml.onmicrosoft.com or acmeml.onmicrosoft.com"}, ["ann", "acmeml"]),
    "IPv4": ({"natIp": "34.122.10.9", "cidr": "34.122.0.0/16"}, ["34.122"]),
    "IPv6": ({"address": "2600:1900:4000::12", "range": "2600:1900:4000:b3::/64"}, ["2600:1900"]),
    "fingerprint": ({"etag": "9f86d081884c7d659a2feaa0c55ad015"}, ["9f86d081884c7d65"]),
    "host": (
        {"endpoint": "gke-9f86d081884c7d659a2feaa0c55ad015-123456789012.us-central1.gke.goog"},
        ["9f86", "1234"],
    ),
}


@pytest.mark.parametrize("kind", _SECRETS)
def test_nothing_of_a_secret_is_left(kind: str) -> None:
    """Secrets and ids of every kind that the providers know are absent from what is recorded."""
    value, secrets = _SECRETS[kind]
    scrubbed = json.dumps(Scrubber().scrub(value))
    assert [secret for secret in secrets if secret.lower() in scrubbed.lower()] == []


def test_facts_are_kept() -> None:
    """Names, sizes, versions, private addresses, paths and built-in roles pass unchanged."""
    facts: dict[str, Any] = {
        "name": "train-dev-cluster",
        "machineType": "n2-standard-8",
        "version": "1.33.5-gke.1080000",
        "nodes": 3,
        "enabled": False,
        "ranges": ["10.0.0.0/14", "172.16.0.0/28", "0.0.0.0/0"],
        "dnsServiceIP": "10.100.0.10",
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
        "roleDefinitionId": f"/providers/Microsoft.Authorization/roleDefinitions/{_CONTRIBUTOR}",
        "urn": "urn:pulumi:dev::ebbtide::ebbtide:gke:Cluster$gcp:container/cluster:Cluster::train-cluster",
        "time": "2026-11-24T14:02:59Z",
        "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "nodeResourceGroup": "MC_train-dev-aks_train-dev-aks_eastus",
        "secretManagerConfig": {"enabled": True},
    }
    assert Scrubber().scrub(facts) == facts
    assert Scrubber().scrub({"a": UNKNOWN, "b": None}) == {"a": "[unknown]", "b": None}


def test_ids_still_refer_to_each_other() -> None:
    """A value has one placeholder, and another value another one, each a valid value of its kind."""
    scrub = Scrubber().scrub
    first = scrub({"project": "acme-ml", "tenant": _SUBSCRIPTION, "member": "ann@acme.example"})
    again = scrub(
        {"projectId": "acme-ml", "id": f"/x/{_SUBSCRIPTION}", "ip": "34.1.2.3", "cidr": "34.1.2.3/32"}
    )
    assert first == {
        "project": "project-1",
        "tenant": "00000000-0000-4000-8000-000000000001",
        "member": "user-1@example.com",
    }
    assert again == {
        "projectId": "project-1",
        "id": "/x/00000000-0000-4000-8000-000000000001",
        "ip": "198.18.0.1",
        "cidr": "198.18.0.1/32",
    }
    assert scrub({"project": "other-ml", "cidr": "34.9.0.0/16"}) == {
        "project": "project-2",
        "cidr": "198.18.0.0/16",
    }


@pytest.mark.parametrize("kind", _SECRETS)
def test_scrubbing_again_changes_nothing(kind: str) -> None:
    """Scrubbed text is not changed by another scrubbing."""
    once = Scrubber().scrub(_SECRETS[kind][0])
    assert Scrubber().scrub(once) == once


@given(st.text(), st.binary(min_size=32, max_size=96))
def test_random_keys_are_found(text: str, key: bytes) -> None:
    """A key in base64 with its padding is removed, whatever its bytes."""
    encoded = base64.b64encode(key + b"x" * (len(key) % 3 == 0)).decode()
    assert encoded.rstrip("=") not in Scrubber().text(f"{text} {encoded}")
