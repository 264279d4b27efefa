"""Kubernetes' API as plain JSON: what is sent, what is made of answers, and whom it leads to."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from ebbtide.clients.kubernetes import JSON_PATCH, Api, ApiError, KubeconfigError
from ebbtide.text import install_command
from ebbtide.values import clock
from tests.repository import ROOT
from tests.unit.clients.conftest import Handler, Server

_PODS = "/api/v1/namespaces/n/pods"


def _kubeconfig(server: str, **context: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "contexts": [{"name": "dev", "context": {"cluster": "dev", "user": "me", **context}}],
        "clusters": [{"name": "dev", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
    }


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    """Return the API of a kubeconfig."""
    made = Api.of_kubeconfig(_kubeconfig(server.url, namespace="vision"))
    yield made
    made.close()


def test_what_is_sent(server: Server, api: Api) -> None:
    """Strict validation where something is made, the token always, options where they belong."""
    api.create(_PODS, {"kind": "Pod"}, dryRun="All")
    api.apply(f"{_PODS}/a", {"kind": "Pod"})
    api.patch(f"{_PODS}/a", [], JSON_PATCH)
    api.delete(f"{_PODS}/a", propagationPolicy="Background")
    api.get(_PODS, labelSelector="a=b")
    created, applied, patched, deleted, got = server.asked
    strict = {"fieldManager": "ebbtide", "fieldValidation": "Strict"}
    assert (created["method"], created["query"]) == ("POST", strict | {"dryRun": "All"})
    assert (applied["method"], applied["query"]) == ("PATCH", strict | {"force": "true"})
    assert (applied["type"], patched["type"]) == ("application/apply-patch+yaml", JSON_PATCH)
    assert deleted["body"] == {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    assert got["query"] == {"labelSelector": "a=b"}
    assert {request["token"] for request in server.asked} == {"Bearer secret"}
    assert api.namespace == "vision"


def test_a_context_has_its_own_namespace() -> None:
    """The named one counts, and not the current one."""
    kubeconfig = _kubeconfig("https://127.0.0.1", namespace="vision")
    kubeconfig["contexts"] += [
        {"name": name, "context": {"cluster": "dev", "user": "me", **more}}
        for name, more in (("speech", {"namespace": "speech"}), ("none", dict[str, str]()))
    ]
    found = [Api.of_kubeconfig(kubeconfig, name).namespace for name in ("", "speech", "none")]
    assert found == ["vision", "speech", "default"]


@pytest.mark.parametrize(("ahead", "is_wrong"), [(-86400, True), (90, True), (30, False), (-30, False)])
def test_the_time_is_the_servers(
    api: Api, monkeypatch: pytest.MonkeyPatch, ahead: float, *, is_wrong: bool
) -> None:
    """The server's time is used unless it differs by less than a minute."""
    monkeypatch.setattr("ebbtide.values.clock._ahead", clock.difference())  # restored afterwards
    date = formatdate(time.time() - ahead, usegmt=True)

    def answered(_: object) -> str:
        return date

    monkeypatch.setattr(Handler, "date_time_string", answered)
    now = api.now().timestamp()
    assert abs(now - time.time() + (ahead if is_wrong else 0)) < 10
    assert clock.difference()[1] == "127.0.0.1"
    clock.heard("other", "yesterday")
    clock.heard("other", None)
    assert clock.difference()[1] == "127.0.0.1"


def test_as_another_user(server: Server, api: Api) -> None:
    """By impersonation; named by no one, as itself."""
    for user in ("ada@acme.example", ""):
        api.as_user(user).get(_PODS)
    assert [request["user"] for request in server.asked] == ["ada@acme.example", None]


def test_a_token(server: Server) -> None:
    """A token authenticates as its holder, and the field manager is kept."""
    made = Api.of_token(server.url, "", "other", manager="us")
    made.create(_PODS, {})
    assert (server.asked[0]["token"], server.asked[0]["query"]["fieldManager"]) == ("Bearer other", "us")
    made.close()


def test_a_refusal(server: Server, api: Api) -> None:
    """The error has the API server's message, its reason and its causes."""
    cause = {"reason": "FieldValueRequired", "field": "spec"}
    answer = {"message": "it is there", "reason": "AlreadyExists", "details": {"causes": [cause]}}
    server.status, server.answer = 409, json.dumps(answer)
    with pytest.raises(ApiError, match=r"^it is there$") as refused:
        api.create(_PODS, {})
    error = refused.value
    assert (error.status, error.reason, error.causes) == (409, "AlreadyExists", (cause,))
    assert error.already_exists
    assert not error.unanswered


def test_what_is_not_there(server: Server, api: Api) -> None:
    """Finding returns nothing, and deleting succeeds; an answer that is no JSON is shown as it is."""
    server.status, server.answer = 404, "404 page not found"
    assert api.find(_PODS) is None
    api.delete(_PODS)
    with pytest.raises(ApiError, match="404 page not found") as missing:
        api.get(_PODS)
    assert missing.value.not_found


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before repetitions, which take no time."""
    taken: list[float] = []
    monkeypatch.setattr("ebbtide.clients.kubernetes.api.time.sleep", taken.append)
    return taken


@pytest.mark.parametrize("status", [429, 500, 503])
def test_no_answer_now(server: Server, api: Api, pauses: list[float], status: int) -> None:
    """A busy API server may answer later: the request is repeated three times, with longer pauses."""
    server.status = status
    with pytest.raises(ApiError) as refused:
        api.find(_PODS)
    assert refused.value.unanswered
    assert len(server.asked) == 4
    assert pauses == [0.3, 1.0, 3.0]


def test_an_answer_that_names_its_time(server: Server, api: Api, pauses: list[float]) -> None:
    """`Retry-After` is waited for, up to half a minute."""
    for given, waited in (("7", 7.0), ("3000", 30.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 3.0)):
        server.status, server.headers = 429, {"Retry-After": given}
        with pytest.raises(ApiError):
            api.patch(f"{_PODS}/a", {})
        assert pauses[-1] == waited


def test_a_lost_answer(server: Server, api: Api, pauses: list[float]) -> None:
    """A connection that the server closes without an answer is tried again."""
    server.lost = 2
    assert api.get(_PODS) == {"kind": "Pod"}
    assert (len(server.asked), len(pauses)) == (3, 2)


def test_an_eviction_that_a_budget_forbids(server: Server, api: Api, pauses: list[float]) -> None:
    """An eviction that a PodDisruptionBudget forbids is not repeated: a drain has its own pace."""
    cause = {"reason": "DisruptionBudget", "message": "The disruption budget needs 1 healthy pod"}
    server.status, server.answer = 429, json.dumps({"message": "no", "details": {"causes": [cause]}})
    with pytest.raises(ApiError):
        api.create(f"{_PODS}/a/eviction", {})
    assert (len(server.asked), pauses) == (1, [])


def test_a_deletion_by_uid(server: Server, api: Api) -> None:
    """The API server compares the UID; another object of the name is not an error."""
    api.delete(f"{_PODS}/a", uid="u", propagationPolicy="Background")
    assert server.asked[0]["body"]["preconditions"] == {"uid": "u"}
    server.status, server.answer = 409, json.dumps({"message": "another UID", "reason": "Conflict"})
    api.delete(f"{_PODS}/a", uid="u")
    with pytest.raises(ApiError, match="another UID"):
        api.delete(f"{_PODS}/a")


def test_an_unreachable_server(monkeypatch: pytest.MonkeyPatch, pauses: list[float]) -> None:
    """The error names the server and the cause, at once; no proxy leads to this machine."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        server = f"https://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ApiError) as refused:
            Api.of_kubeconfig(_kubeconfig(server)).get("/version")
    assert refused.value.unanswered
    assert str(refused.value) == f"The API server at {server} cannot be reached (Connection refused)"
    assert pauses == []


def test_a_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's leads to any other machine, as for kubectl; NO_PROXY keeps it away."""
    monkeypatch.setenv("HTTP_PROXY", server.url)
    Api.of_kubeconfig(_kubeconfig("http://cluster.invalid")).get("/version")
    assert len(server.asked) == 1
    monkeypatch.setenv("NO_PROXY", "cluster.invalid")
    with pytest.raises(ApiError, match="cannot be reached"):
        Api.of_kubeconfig(_kubeconfig("http://cluster.invalid")).get("/version")


def test_kubeconfigs_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the fault."""
    with pytest.raises(KubeconfigError, match="The kubeconfig cannot be used: "):
        Api.of_kubeconfig({})
    file = tmp_path / "config"
    file.write_text(json.dumps(_kubeconfig("https://127.0.0.1:1")))
    code = "from ebbtide.clients.kubernetes import Api, KubeconfigError\ntry: Api.of_user({!r})\n"
    code += "except KubeconfigError as error: print(error)"
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert _printed(code.format("prod")).startswith("No kubeconfig has a usable context prod: ")
    assert _printed(code.format("dev")) == ""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert _printed(code.format("")).startswith("There is no kubeconfig for a cluster: ")


def test_without_the_client() -> None:
    """The error names what to install, on the first request and not before."""
    output = _printed(
        "import sys; sys.modules['kubernetes'] = None\n"
        "from ebbtide.clients.kubernetes import Api, MissingClientError\n"
        "try: Api.of_user()\n"
        "except MissingClientError as error: print(error)"
    )
    assert output.startswith("Access to a cluster needs the official Kubernetes client")
    assert output.endswith(f"Install it with: {install_command('cluster')}.\n")


def _printed(code: str) -> str:
    """Return the output of a separate process: the client reads `KUBECONFIG` when it is imported."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def test_lines(server: Server, api: Api) -> None:
    """Lines of a text come without their ends, the last one also without a newline."""
    server.answer = "one\n\nzwölf\nrest"
    assert list(api.lines(f"{_PODS}/a/log", follow="true")) == ["one", "", "zwölf", "rest"]
    assert server.asked[0]["query"] == {"follow": "true"}
    server.status, server.answer = 404, json.dumps({"message": "pods a not found", "reason": "NotFound"})
    with pytest.raises(ApiError, match="pods a not found"):
        list(api.lines(f"{_PODS}/a/log"))
