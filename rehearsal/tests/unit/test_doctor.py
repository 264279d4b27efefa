"""`ebbtide doctor` over the fake clouds' REST APIs; with the engine in `control_plane/test_stay.py`."""

import json
import re
import time
from collections.abc import Callable, Generator
from datetime import timedelta
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ebbtide.cli.entry_point import app
from ebbtide.declaration.providers import constraints
from ebbtide.declaration.providers.constraints import needs_of, unknown
from ebbtide.operations import doctor
from ebbtide.operations.engine.failures import OperationError
from ebbtide.values import clock
from ebbtide_rehearsal.cloud.rest.access import write_google_login
from ebbtide_rehearsal.cloud.rest.server import disabled, granted
from ebbtide_rehearsal.cloud.store import QUOTA, InjectedFault
from rehearsal.tests.unit.rest_clouds import PROJECT, SUBSCRIPTION, RestClouds, rest_clouds
from tests.pages import of_kind
from tests.repository import ROOT

_PROGRAMS = ("git", "gke-gcloud-auth-plugin", "kubelogin")


class _Backend:
    """A backend with one stack, whose cluster is not created yet."""

    def __init__(self, root: Path) -> None:
        assert root == ROOT

    def opened(self, name: str) -> "_Backend":
        if name not in ("dev", "dev-aks"):
            raise OperationError(f"There is no stack {name} in the backend")
        return self

    def outputs(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[RestClouds]:
    """The fake clouds, all programs on PATH, and a stack in the backend."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in _PROGRAMS:
        _program(programs / name)
    _program(programs / "pulumi", "echo v3.270.0")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(doctor, "Backend", _Backend)
    monkeypatch.setattr(clock, "_ahead", (timedelta(), ""))
    with rest_clouds(tmp_path, monkeypatch) as serving:
        yield serving


def _program(path: Path, line: str = "true") -> None:
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(0o755)


def _found(stack: str, *options: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """Exit status, and findings by status."""
    command = ["doctor", stack, "--format", "json", "--cwd", str(ROOT), *options]
    done = CliRunner().invoke(app, command)
    found: dict[str, list[dict[str, str]]] = {"ok": [], "problem": [], "skipped": []}
    for finding in json.loads(done.stdout):
        found[finding["status"]].append(finding)
    return done.exit_code, found


@pytest.mark.parametrize("stack", ["dev", "dev-aks"])
def test_nothing_is_wrong(clouds: RestClouds, stack: str) -> None:
    """With every right and enough quota there is no problem; the cluster does not exist yet."""
    assert clouds
    status, found = _found(stack)
    assert (status, found["problem"]) == (0, [])
    assert [finding["check"] for finding in found["skipped"]] == ["cluster"]
    checks = {"tools", "stack", "login", "APIs", "rights", "quotas", "clock"}
    assert {finding["check"] for finding in found["ok"]} == checks


def _no_api(clouds: RestClouds) -> None:
    for api in ("container.googleapis.com", "iam.googleapis.com"):
        clouds.store.put(disabled(PROJECT, api))


def _no_provider(clouds: RestClouds) -> None:
    clouds.store.put(disabled(SUBSCRIPTION, "microsoft.network"))


def _no_networks(clouds: RestClouds) -> None:
    clouds.store.put(granted(PROJECT, "*", without=("compute.networks.*",)))


def _contributor(clouds: RestClouds) -> None:
    clouds.store.put(granted(SUBSCRIPTION, "*", without=("Microsoft.Authorization/*/Write",)))


def _no_quota(clouds: RestClouds) -> None:
    clouds.store.inject(InjectedFault(QUOTA, "PREEMPTIBLE_CPUS", details={"limit": 1}))


def _wrong_login(clouds: RestClouds, tmp_path: Path) -> None:
    write_google_login(tmp_path / "application_default_credentials.json", clouds.origin, "expired")


@pytest.mark.parametrize(
    ("trouble", "stack", "check", "message", "fix"),
    [
        (
            _no_api,
            "dev",
            "APIs",
            "container.googleapis.com and iam.googleapis.com are not enabled in project acme-ml.",
            "gcloud services enable container.googleapis.com iam.googleapis.com --project acme-ml",
        ),
        (
            _no_provider,
            "dev-aks",
            "APIs",
            f"Microsoft.Network is not enabled in subscription {SUBSCRIPTION}.",
            f"az provider register --wait --namespace Microsoft.Network --subscription {SUBSCRIPTION}",
        ),
        (
            _no_networks,
            "dev",
            "rights",
            "You lack compute.networks.create and compute.networks.delete in project acme-ml.",
            "add-iam-policy-binding acme-ml --member user:YOU --role roles/compute.networkAdmin",
        ),
        (
            _contributor,
            "dev-aks",
            "rights",
            f"You lack Microsoft.Authorization/roleAssignments/write in subscription {SUBSCRIPTION}.",
            f'--role "Role Based Access Control Administrator" --scope /subscriptions/{SUBSCRIPTION}',
        ),
        (
            _no_quota,
            "dev",
            "quotas",
            "Too low for all pools at their maximum: PREEMPTIBLE_CPUS in us-central1.",
            "quota dev",
        ),
    ],
)
def test_a_trouble_is_found(
    clouds: RestClouds, trouble: Callable[[RestClouds], None], stack: str, check: str, message: str, fix: str
) -> None:
    """A trouble is the only problem, with the command that fixes it."""
    trouble(clouds)
    status, found = _found(stack)
    assert status == 1
    assert [(finding["check"], finding["message"]) for finding in found["problem"]] == [(check, message)]
    assert fix in found["problem"][0]["fix"]


@pytest.mark.parametrize(("stack", "account"), [("dev", PROJECT), ("dev-aks", SUBSCRIPTION)])
def test_a_login_that_only_reads(clouds: RestClouds, stack: str, account: str) -> None:
    """Rights to read suffice for --drift; a missing one is a problem, with the role that has it."""
    reads = {permission for need in needs_of(_types(stack)) for permission in need.reads}
    clouds.store.put(granted(account, *reads))
    assert _found(stack)[0] == 1
    status, found = _found(stack, "--drift")
    assert (status, found["problem"]) == (0, [])
    (lost, *kept) = sorted(reads)
    clouds.store.put(granted(account, *kept))
    (problem,) = _found(stack, "--drift")[1]["problem"]
    assert f"You lack {lost} in " in problem["message"]
    (named,) = [it["message"] for it in found["ok"] if it["check"] == "roles"]
    assert re.findall(r"--role \"?([^\" ]+)", problem["fix"])[0] in named


def test_every_type_can_be_read() -> None:
    """Each type has a permission to read it with a role; an identity of a service has nothing to read."""
    without = {kind for kind, own in constraints.rows().items() if not any(need.reads for need in own)}
    assert without == {"gcp:projects/serviceIdentity:ServiceIdentity"}
    assert all(bool(need.reads) == bool(need.reader) for own in constraints.rows().values() for need in own)
    changing = re.compile(r"write|delete|create|update|\.set|actAs")
    assert not [
        it for own in constraints.rows().values() for need in own for it in need.reads if changing.search(it)
    ]


def test_the_page_on_drift_names_the_roles() -> None:
    """Each role of the table is on the page that tells how to make the identity of the daily run."""
    page = (ROOT / "docs/drift.md").read_text(encoding="utf-8")
    roles = {need.reader for own in constraints.rows().values() for need in own} - {""}
    assert {role for role in roles if role not in page} == set()


def test_without_a_login(clouds: RestClouds, tmp_path: Path) -> None:
    """The checks that need it are named with the reason."""
    _wrong_login(clouds, tmp_path)
    status, found = _found("dev")
    assert status == 1
    assert [(it["check"], it["fix"]) for it in found["problem"]] == [
        ("login", "gcloud auth application-default login")
    ]
    assert "Log in" not in found["problem"][0]["message"]
    assert {it["check"] for it in found["skipped"]} == {"cluster", "APIs", "rights", "quotas", "clock"}


def test_without_tools(clouds: RestClouds, tmp_path: Path) -> None:
    """An old engine and a missing credential plugin have their installation; --offline asks no cloud."""
    assert clouds
    _program(tmp_path / "bin/pulumi", "echo v3.100.0")
    (tmp_path / "bin/kubelogin").unlink()
    status, found = _found("dev-aks", "--offline")
    assert status == 1
    assert [it["message"] for it in found["problem"]] == [
        "pulumi is 3.100.0, older than 3.259.0.",
        "`kubelogin` is not on PATH.",
    ]
    assert found["problem"][1]["fix"] == "az aks install-cli"
    assert {it["message"] for it in found["skipped"]} == {"It needs the network, and --offline was given."}


def test_the_passphrase_and_the_stack(
    clouds: RestClouds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A salt in the stack's file needs a passphrase; a stack that is not in the backend is to be created."""
    assert clouds
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    file = tmp_path / "Pulumi.mine.yaml"
    text = (ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    file.write_text(f"encryptionsalt: v1:a\n{text}", encoding="utf-8")
    _, found = _found("mine", "--config-file", str(file))
    problems = {it["check"]: it["fix"] for it in found["problem"]}
    assert problems == {
        "passphrase": "export PULUMI_CONFIG_PASSPHRASE='the passphrase'",
        "stack": "pulumi stack init mine",
    }


def test_a_wrong_clock(clouds: RestClouds, monkeypatch: pytest.MonkeyPatch) -> None:
    """The difference from the server's time is a problem."""
    assert clouds
    before = formatdate(time.time() - 3 * 3600, usegmt=True)

    def date(_server: BaseHTTPRequestHandler, _time: float | None = None) -> str:
        return before

    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", date)
    _, found = _found("dev")
    (problem,) = [it for it in found["problem"] if it["check"] == "clock"]
    assert problem["message"] == "This machine's clock is 3 hours ahead of that of localhost."


def _types(stack: str) -> set[str]:
    """The types of resources of a cloud that a stack creates."""
    text = (ROOT / f"tests/examples/golden/{stack}.yaml").read_text(encoding="utf-8")
    return set(re.findall(r"^ *-? *type: ((?:gcp|azure-native):\S+)$", text, flags=re.MULTILINE))


def test_every_type_has_its_needs() -> None:
    """Each resource type that the golden stacks create is in the table."""
    stacks = [file.stem for file in (ROOT / "tests/examples/golden").glob("*.yaml")]
    types = {token for stack in stacks for token in _types(stack)}
    assert len(types) > 20
    assert unknown([*types]) == []


def test_types_without_a_row_are_said(clouds: RestClouds, monkeypatch: pytest.MonkeyPatch) -> None:
    """A type that is not in the table, as in a user's program, is named."""
    assert clouds
    rows = constraints.rows()
    known = {kind: own for kind, own in rows.items() if kind != "gcp:compute/router:Router"}
    monkeypatch.setattr(constraints, "rows", lambda: known)
    status, found = _found("dev")
    assert status == 0
    said = {it["check"]: it["message"] for it in found["skipped"] if it["check"] != "cluster"}
    assert said == dict.fromkeys(("APIs", "rights"), "The needs of gcp:compute/router:Router are not known.")


def test_no_permission_is_asked_for_without_any(clouds: RestClouds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a known need in a project its checks are made, and succeed."""
    assert clouds
    monkeypatch.setattr(constraints, "rows", dict)
    _, found = _found("dev")
    made = {it["check"]: it["message"] for it in found["ok"] if it["check"] in ("APIs", "rights")}
    assert made == dict.fromkeys(("APIs", "rights"), "None needed in project acme-ml.")


@pytest.mark.parametrize(
    ("page", "stack", "begins", "own"),
    [
        ("docs/gke.md", "dev", "gcloud services enable ", set[str]()),
        # The storage account of the state.
        ("docs/aks.md", "dev-aks", "az provider register --wait --namespace ", {"Microsoft.Storage"}),
    ],
)
def test_pages_enable_what_is_needed(page: str, stack: str, begins: str, own: set[str]) -> None:
    """The commands of the pages on a first cluster enable the APIs of its resource types."""
    lines = [line for block in of_kind("sh") if block.page == page for line in block.text.splitlines()]
    enabled = {
        word
        for line in lines
        if line.startswith(begins)
        for word in line.removeprefix(begins).partition(" --project")[0].split()
    }
    needed = {need.api for need in needs_of(_types(stack)) if need.api}
    assert enabled == needed | own
