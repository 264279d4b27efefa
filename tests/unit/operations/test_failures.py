"""Failures of the engine: locks of dead and living engines, causes in brief, and advice for known ones."""

import getpass
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ebbtide.operations.engine.failures import (
    Lock,
    LockedError,
    advice,
    causes,
    conflicts,
    explanation,
    locks_of,
    unlocking,
)

_MESSAGE = (
    "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or "
    "delete the lock file with `pulumi cancel`.\n"
    "  file:///state/.pulumi/locks/organization/p/dev/1.json: created by {user}@{host} (pid {pid}) at "
    "2026-11-22T12:00:00Z"
)


def _locks(pid: int, host: str = "", user: str = "") -> list[Lock]:
    host, user = host or socket.gethostname(), user or getpass.getuser()
    return locks_of(_MESSAGE.format(user=user, host=host, pid=pid))


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def _tried(locks: list[Lock]) -> tuple[list[str], list[str]]:
    """Run an engine that these locks stop until they are removed."""
    removed: list[str] = []
    lines: list[str] = []

    def run() -> None:
        if not removed:
            raise LockedError(locks, "Another update is in progress.")

    unlocking(run, lambda: removed.append("all"), lines.append)
    return removed, lines


def test_the_lock_of_a_dead_engine_is_removed(dead: int) -> None:
    """The lock of this user's ended process on this machine is removed."""
    removed, lines = _tried(_locks(dead))
    assert removed == ["all"]
    assert lines == [f"The engine that locked the stack (process {dead}) has ended; its lock is removed."]


def test_the_number_of_another_program_is_no_engine() -> None:
    """Python is not `pulumi`."""
    assert _tried(_locks(os.getpid()))[0] == ["all"]


@pytest.mark.parametrize("other", [{"host": "another"}, {"user": "ada"}])
def test_the_lock_of_another_machine_or_user_stays(other: dict[str, str], dead: int) -> None:
    """Nothing here shows that its engine has ended."""
    with pytest.raises(LockedError):
        _tried(_locks(dead, **other))


def test_on_windows_a_lock_stays(dead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No signal is sent: signal 0 is Ctrl-C there, and would stop the engine."""
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    monkeypatch.setattr(os, "kill", None)
    (lock,) = _locks(dead)
    assert lock.is_held


def test_a_service_names_no_process() -> None:
    """A lock of a service backend, which names no process, is kept."""
    with pytest.raises(LockedError):
        _tried(locks_of("[409] Conflict: Another update is currently in progress."))


def test_a_living_engine_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A running engine is named once, and the command continues when it releases its lock."""
    monkeypatch.setattr(Lock, "is_held", True)
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    lines: list[str] = []

    def run() -> str:
        if len(waits) < 3:
            raise LockedError(_locks(7), "Another update is in progress.")
        return "done"

    assert unlocking(run, pytest.fail, lines.append) == "done"
    (lock,) = _locks(7)
    assert lines == [f"Waiting for another update of the stack, by {lock.user} on {lock.host} (process 7)."]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            "googleapi: Error 403: Kubernetes Engine API has not been used in project 1 before.",
            "An API is not enabled.",
        ),
        ('Code="MissingSubscriptionRegistration"', "An API is not enabled."),
        (
            "The zone does not have enough resources available to fulfill the request.",
            "out of stock of these machines",
        ),
        ('Code="ErrCode_InsufficientVCPUQuota" Insufficient vcpu quota requested 8', "quota dev"),
        ("Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1.", "quota dev"),
        ('googleapi: Error 403: Required "container.clusters.create" permission(s)', "permission is missing"),
        ('Code="AuthorizationFailed"', "permission is missing"),
        (
            'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas',
            "as after `kubectl scale`",
        ),
        (
            'Apply failed with 1 conflict: conflict with "helm" using apps/v1: .spec',
            "Another field manager",
        ),
        (
            'Message="managed cluster is in Provisioning State(Succeeded) and Power State(Stopped)"',
            "wake dev",
        ),
        ("configured Kubernetes cluster is unreachable: unable to load schema", "wake dev"),
        (
            "resource 'localqueues.kueue.x-k8s.io' does not exist",
            "The cluster has no Kueue. Remove `existing: true`",
        ),
        ("resource 'experiments.kubeflow.org' does not exist", "The cluster has no Katib."),
        ('configmaps "b-kueue-manager-config" not found', "it is not from Kueue's chart or manifests"),
        ('vision: namespaces "vision" already exists', "`namespace: {name: NAME, create: false}`"),
        ("googleapi: Error 409: Already exists: projects/p/.../nodePools/cpu.", "not in the stack"),
    ],
)
def test_a_known_cause_has_advice(error: str, text: str) -> None:
    """Once, however many resources it stops."""
    (line,) = advice("dev", [error, error])
    assert text.lower() in line.lower()


def test_another_cause_has_none() -> None:
    """The cloud's own message is enough."""
    assert list(advice("dev", ["something else"])) == []


_TRACEBACK = """\
Program failed with an unhandled exception:
Traceback (most recent call last):
  File "/venv/pulumi/runtime/resource.py", line 899, in do_rpc_call
    return monitor.RegisterResource(req)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/venv/grpc/_channel.py", line 1160, in __call__
    return _end_unary_response_blocking(state, call, False, None)
grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:
\tstatus = StatusCode.UNKNOWN
\tdetails = "capacity cannot change from spot to on-demand"
\tdebug_error_string = "UNKNOWN:Error received from peer"
>

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/ada/project/__main__.py", line 4, in <module>
    deploy()
Exception: capacity cannot change from spot to on-demand
"""
_KEY_ERROR = "Program failed:\nTraceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n"
_QUOTA = "train-t4: 1 error occurred:\n\t* googleapi: Error 403: Insufficient quota, forbidden\n\n"


@pytest.mark.parametrize(
    ("errors", "brief"),
    [
        ([_QUOTA], ["train-t4: googleapi: Error 403: Insufficient quota, forbidden"]),
        ([_QUOTA, _TRACEBACK], ["train-t4: googleapi: Error 403: Insufficient quota, forbidden"]),
        ([_TRACEBACK], ["capacity cannot change from spot to on-demand"]),
        (
            [_KEY_ERROR],
            ["The program failed: KeyError: 'x'"],
        ),
        (
            ["train-t4: sdk.helper_schema: Error 400: bad: provider=google-beta", "train-t4: Error 400: bad"],
            ["train-t4: Error 400: bad"],
        ),
        (["update failed"], ["update failed"]),
        (["resource monitor shut down while waiting"], ["resource monitor shut down while waiting"]),
        (["\n".join("abcdefgh")], ["a\nb\nc\nd\ne\nf\n…"]),
    ],
)
def test_causes_are_brief(errors: list[str], brief: list[str]) -> None:
    """A traceback adds nothing to a resource's own error, and alone it is reduced to its exception."""
    assert causes(errors) == brief


def test_all_errors_are_in_a_file() -> None:
    """The file is named where something was left out, and only its owner can read it; with `--verbose`
    everything is printed."""
    *shown, last = explanation("org/dev", [_QUOTA, _TRACEBACK])
    assert len(shown) == 2
    file = Path(last.removeprefix("All errors of the engine: "))
    try:
        assert "debug_error_string" in file.read_text(encoding="utf-8")
        assert file.stat().st_mode & 0o077 == 0
    finally:
        file.unlink()
    assert list(explanation("dev", [_QUOTA, _TRACEBACK], verbose=True))[:2] == [_QUOTA, _TRACEBACK]
    assert list(explanation("dev", ["a: wrong"])) == ["a: wrong"]


@pytest.mark.parametrize(
    ("error", "command"),
    [
        (
            "google: could not find default credentials. See https://cloud.google.com",
            "gcloud auth application-default login",
        ),
        (
            'oauth2: "invalid_grant" "reauth related error (invalid_rapt)"',
            "gcloud auth application-default login",
        ),
        (
            (
                "checking az cli version: could not find `az`: MSI, OIDC, client secret and client "
                "certificate authentication are not configured so we require the Azure CLI for authentication"
            ),
            "az login",
        ),
        ("getting credentials: exec: executable kubelogin failed with exit code 1", "az login"),
        (
            "getting credentials: exec: executable gke-gcloud-auth-plugin failed with exit code 1",
            "gcloud auth login",
        ),
    ],
)
def test_a_missing_login_is_one_sentence(error: str, command: str) -> None:
    """The sentence has the command that logs in, however many resources fail."""
    sentence, file = explanation("dev", [f"a: {error}", f"b: {error}", _TRACEBACK])
    assert sentence == f"The engine found no valid login: log in with `{command}`."
    Path(file.removeprefix("All errors of the engine: ")).unlink()


_PATCH = """--type merge --patch '{"spec": {"replicas": 1}}'"""


@pytest.mark.parametrize(
    ("manager", "begun", "lines"),
    [
        (
            {"manager": "kubectl", "subresource": "scale"},
            True,
            [f"kueue spec.replicas: kubectl patch deployment kueue --namespace kueue-system {_PATCH}"],
        ),
        ({"manager": "kubectl", "subresource": "scale"}, False, []),
        ({"manager": "kubectl-edit"}, True, []),
    ],
)
def test_a_conflict_is_undone_by_a_command(manager: dict[str, str], lines: list[str], *, begun: bool) -> None:
    """The declared value is that of the step that failed: the state has the refreshed one."""
    owned: dict[str, Any] = {**manager, "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    live: dict[str, Any] = {"metadata": {"name": "kueue", "managedFields": [owned]}, "spec": {"replicas": 2}}
    urn = "urn:pulumi:dev::shop::kubernetes:apps/v1:Deployment::kueue"
    failed = {
        "urn": urn,
        "type": "kubernetes:apps/v1:Deployment",
        "id": "kueue-system/kueue",
        "inputs": {"spec": {"replicas": 2}},
        "outputs": live,
        "initErrors": ["Apply failed with 1 conflict"],
    }
    declared = {urn: {"metadata": {"name": "kueue"}, "spec": {"replicas": 1}}} if begun else {}
    assert list(conflicts({"resources": [failed]}, declared)) == lines
    assert list(conflicts({"resources": [failed | {"initErrors": []}]}, declared)) == []
