"""Clouds' APIs that misbehave, or a proxy in their place: each answer beyond a bound is one clear line."""

import gzip
import io
import itertools
import json
import time
from collections.abc import Callable, Generator
from contextlib import nullcontext, suppress
from random import Random
from typing import Any, cast

import pytest
import requests
from azure.core.credentials import AccessToken
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from ebbtide.clients.clouds import azure, connect, google, http
from ebbtide.clients.clouds.interfaces import (
    Account,
    CloudApiError,
    CloudResource,
    ClusterIdentity,
    NodePoolSize,
    StoredData,
)
from ebbtide.values.cloud_kind import CloudKind
from tests.unit.clients.conftest import Server

_MEBIBYTE = 2**20


def _refused(server: Server) -> str:
    with requests.Session() as session, pytest.raises(CloudApiError) as error:
        http.get_json(session, server.url, {}, {})
    return str(error.value)


def _endless(_: int) -> Generator[bytes]:
    while True:
        yield b"[" * 2**16


def _dripping(_: int) -> Generator[bytes]:
    while True:
        yield b" "
        time.sleep(0.02)


def test_a_body_has_an_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an endless body nor a small one that decompresses to a large one is read to its end."""
    monkeypatch.setattr(http, "_LARGEST", _MEBIBYTE)
    server.body = _endless
    assert "answered with more than 1 MiB. Check the network's proxy" in _refused(server)
    bomb = gzip.compress(bytes(64 * _MEBIBYTE))
    server.headers["Content-Encoding"] = "gzip"
    server.body = lambda _: [bomb]
    assert "answered with more than 1 MiB. Check the network's proxy" in _refused(server)


def test_an_answer_has_a_time(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that arrives byte by byte is given up."""
    monkeypatch.setattr(http, "_WHOLE", 0.2)
    server.body = _dripping
    assert "did not finish its answer within 0 s." in _refused(server)


def test_a_wait_has_a_bound() -> None:
    """A day that the server asks for is half a minute."""
    session = http.with_retries(requests.Session())
    retries = cast("HTTPAdapter", session.get_adapter("https://cloud")).max_retries
    assert retries.get_retry_after(HTTPResponse(headers={"Retry-After": "86400"})) == 30
    assert retries.new().get_retry_after(HTTPResponse(headers={"Retry-After": "5"})) == 5


@pytest.mark.parametrize(("method", "again"), [("GET", True), ("POST", False), ("DELETE", False)])
def test_only_reads_are_sent_again(method: str, again: bool) -> None:  # noqa: FBT001
    """A creation or a deletion that has had an effect before its error must not have another."""
    session = http.with_retries(requests.Session())
    retries = cast("HTTPAdapter", session.get_adapter("https://cloud")).max_retries
    for status in (429, 500, 502, 503, 504):
        assert bool(retries.is_retry(method, status)) is again
    assert not retries.is_retry(method, 404)


@pytest.mark.parametrize("body", [b"[" * 10**6, b'{"a":' * 10**5, b"[]", b"<html>", b"\xff"])
def test_a_document_of_no_shape(server: Server, body: bytes) -> None:
    """Deep JSON, JSON that is no object, and no JSON at all are one answer."""
    server.body = lambda _: [body]
    assert _refused(server).startswith("127.0.0.1 did not return JSON. Check the network's proxy, ")


def test_a_message_is_shortened(server: Server) -> None:
    """The beginning of an error text of 200 kB is shown."""
    server.status = 400
    server.answer = json.dumps({"error": {"message": "no " * 70_000}})
    assert len(_refused(server)) < 600


@pytest.mark.parametrize("token", ["same", ""])
def test_pages_have_an_end(server: Server, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    """A page that returns and ever new pages end a list."""
    monkeypatch.setattr(http, "_PAGES", 5)
    server.body = lambda number: [json.dumps({"nextPageToken": token or str(number)}).encode()]
    with requests.Session() as session, pytest.raises(CloudApiError, match=r"does not end\. Check"):
        list(http.pages(session, server.url, {}, {}))
    assert len(server.asked) == (2 if token else 5)


def test_a_token_stays_with_its_host(server: Server) -> None:
    """The next page of an Azure list, and where a redirect leads, are not read from another host."""
    other = f"http://localhost:{server.server_port}/elsewhere"
    server.answer = json.dumps({"nextLink": other})
    with requests.Session() as session, pytest.raises(CloudApiError, match="localhost, which does not get"):
        list(http.linked(session, server.url, {}, {}, "nextLink"))
    server.status, server.headers["Location"] = 302, other
    server.answer = ""
    assert "did not return JSON" in _refused(server)
    assert [item for item in server.asked if item["path"] == "/elsewhere"] == []


class _Answer(dict[str, Any]):
    """An object with a value under each key that is read, which is usually of the documented kind."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self._chance = chance

    def __getitem__(self, key: str) -> Any:
        if key not in self.keys():
            usual = self._chance.random() < 0.95
            if usual and key.startswith("next"):
                self[key] = None
            elif usual and key in _OBJECTS:
                self[key] = _Answer(self._chance)
            elif usual and (key == "value" or key.endswith("s")):
                self[key] = [_Answer(self._chance)] * self._chance.randint(1, 2)
            elif usual:
                self[key] = self._chance.choice(_TEXTS)
            else:
                self[key] = _value(self._chance)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a value, or the default."""
        return self[key] if self._chance.random() < 0.8 else default


_OBJECTS = ("autoscaling", "config", "labels", "properties", "resourceLabels", "sku", "tags")
_TEXTS = (
    "",
    "x",
    "1",
    f"/subscriptions/s/resourceGroups/n/providers/{'a/' * 4}b",
    "RUNNING",
    "2026-11-01T00:00:00Z",
)
_VALUES: tuple[Any, ...] = (*_TEXTS, None, True, False, -1, 0, 3, 1.5, [], ["x"])


def _value(chance: Random) -> Any:
    return chance.choice(_VALUES) if chance.random() < 0.6 else _Answer(chance)


_ON_GOOGLE, _ON_AZURE = Account(CloudKind.GKE, "acme-ml"), Account(CloudKind.AKS, "s")
_CLUSTERS = {
    account: ClusterIdentity(
        account=account, location="us-central1-a", name="train", resource_group="g", node_resource_group="n"
    )
    for account in (_ON_GOOGLE, _ON_AZURE)
}
_IDS = {
    _ON_GOOGLE: "projects/acme-ml/locations/us-central1-a/clusters/train",
    _ON_AZURE: "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/train",
}


def _questions(account: Account) -> list[Callable[[], object]]:
    """Return every question to a cloud."""
    inventory, cluster = connect.inventory(account), _CLUSTERS[account]
    rights, cloud, identity = connect.rights(account), account.cloud, _IDS[account]
    power = connect.cluster_power(cloud, identity, [NodePoolSize("system", {}, 1)])
    disk = CloudResource(kind="disk", id=identity, name="d", location="us-central1-a")
    data = StoredData(kind="bucket", name="b", id=identity, account=account)
    return [
        inventory.check,
        lambda: inventory.identify(cluster),
        lambda: inventory.of_cluster(cluster),
        inventory.expiring,
        lambda: inventory.grants(["p"]),
        lambda: inventory.existing([identity]),
        lambda: inventory.contents(data),
        lambda: inventory.delete(disk),
        lambda: rights.disabled(["container.googleapis.com"]),
        lambda: rights.lacking(["container.clusters.create"]),
        power.refusal,
        power.is_stopped,
        lambda: power.stop(print),
        lambda: power.start(print),
        lambda: connect.quota_source(cloud, account.id).limits("us-central1", ["CPUS"]),
        lambda: connect.price_source(cloud).prices("us-central1", ["n2-standard-8"]),
        lambda: connect.metric_source(cloud, identity).query("up"),
        lambda: connect.gke_clusters("acme-ml") if cloud is CloudKind.GKE else connect.aks_clusters("s"),
    ]


@pytest.mark.parametrize("account", [_ON_GOOGLE, _ON_AZURE], ids=str)
@pytest.mark.parametrize("seed", range(50))
def test_a_cloud_never_answers_with_a_traceback(
    monkeypatch: pytest.MonkeyPatch, account: Account, seed: int
) -> None:
    """Whatever the answers are, each question has a result, or an error of one line."""
    chance, seconds = Random(seed), itertools.count(step=7)  # noqa: S311 - no secret

    def request(*_: object, **__: object) -> requests.Response:
        response = requests.Response()
        response.status_code = 200 if chance.random() < 0.95 else 500
        response.raw = HTTPResponse(io.BytesIO(b""), preload_content=False)
        return response

    def document_of(_: object) -> Any:
        return _Answer(chance) if chance.random() < 0.95 else None

    monkeypatch.setattr(requests.Session, "request", request)
    monkeypatch.setattr(http, "document_of", document_of)
    monkeypatch.setattr(http, "_PAGES", 3)
    monkeypatch.setattr(google, "google_session", requests.Session)
    monkeypatch.setattr(azure, "azure_credential", _Credential)
    monkeypatch.setattr(time, "sleep", str)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    for ask in _questions(account):
        with suppress(CloudApiError):
            ask()


class _Credential:
    def get_token(self, *_: object) -> AccessToken:
        """Return a token."""
        return AccessToken("t", 0)


@pytest.mark.parametrize("body", ["{}", '{"quotas": 1}', '{"quotas": [1]}', '{"quotas": [{}]}'])
def test_a_document_of_another_shape(server: Server, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """The error names the cloud that answered, and an empty one is not taken for quotas without limits."""
    server.answer = body
    monkeypatch.setattr(google, "google_session", requests.Session)
    monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", server.url)
    with pytest.raises(CloudApiError, match="Google Cloud answered with a document of another shape"):
        connect.quota_source(CloudKind.GKE, "acme-ml").limits("us-central1", [])


def test_a_name_that_is_no_text(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resource without a text for its name is none: what follows compares and sorts names."""
    cluster = {
        "name": 5,
        "location": "us-central1-a",
        "resourceLabels": {"ebbtide-expires": "x"},
        "selfLink": "/v1/a",
    }
    server.answer = json.dumps({"clusters": [cluster]})
    monkeypatch.setattr(google, "google_session", requests.Session)
    for name in ("CONTAINER", "COMPUTE"):
        monkeypatch.setenv(f"GOOGLE_{name}_CUSTOM_ENDPOINT", server.url)
    with pytest.raises(CloudApiError, match=r"another shape than its API has \(TypeError: name is 5\)"):
        connect.inventory(_ON_GOOGLE).expiring()


_UNREACHABLE = {"items": {"zones/a": {"warning": {"code": "UNREACHABLE"}}}}


@pytest.mark.parametrize(
    ("clusters", "resources", "words"),
    [
        ({"missingZones": ["a", "b"]}, {}, "does not list its clusters in a, b now"),
        ({}, _UNREACHABLE, "does not list forwarding rules of zones/a: UNREACHABLE"),
        ({}, {"items": {"zones/a": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}}, ""),
    ],
)
def test_a_list_without_a_zone_is_no_list(
    server: Server, monkeypatch: pytest.MonkeyPatch, clusters: Any, resources: Any, words: str
) -> None:
    """Resources of a zone that does not answer would be taken for deleted; an empty zone has an answer."""

    def body(_: int) -> list[bytes]:
        path = server.asked[-1]["path"]
        answer: Any = clusters if "/clusters" in path else resources if "/aggregated/" in path else {}
        return [json.dumps(answer).encode()]

    server.body = body
    monkeypatch.setattr(google, "google_session", requests.Session)
    for name in ("CONTAINER", "COMPUTE"):
        monkeypatch.setenv(f"GOOGLE_{name}_CUSTOM_ENDPOINT", server.url)
    with pytest.raises(CloudApiError, match=words) if words else nullcontext():
        assert connect.inventory(_ON_GOOGLE).expiring() == []
