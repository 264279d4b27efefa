"""Checks of all that an update of a stack needs before it starts: tools, logins, rights, APIs, quotas and the
clock, each with the command that fixes it.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal

from ebbtide.analysis import device_plugins
from ebbtide.analysis.preview.stack_files import StackFiles
from ebbtide.analysis.quotas import QuotaCheck
from ebbtide.analysis.reading.pools import read_accounts
from ebbtide.analysis.recording.recording import Recording
from ebbtide.clients.clouds import connect
from ebbtide.clients.clouds.interfaces import Account
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.project import yaml_file
from ebbtide.declaration.providers.constraints import Need, needs_of, roles_of, unknown
from ebbtide.errors import EbbtideError
from ebbtide.operations import access
from ebbtide.operations.engine.backend import Backend
from ebbtide.operations.engine.stack import Stack
from ebbtide.text import and_list, outdated, release
from ebbtide.values import clock, durations
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.given_command import given_command

Status = Literal["ok", "problem", "skipped"]
_PULUMI: Final = PINS["pulumi"].version
_PASSPHRASE: Final = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")
_PLUGINS: Final[Mapping[CloudKind, tuple[str, str]]] = by_cloud(
    gke=("gke-gcloud-auth-plugin", "gcloud components install gke-gcloud-auth-plugin"),
    aks=("kubelogin", "az aks install-cli"),
)
"""Credential plugins of the clusters' kubeconfigs, with the command that installs them (GKE docs,
cluster-access-for-kubectl; azure-aks-docs, kubelogin-authentication, 2026)."""
_PREFIXES: Final = by_cloud(gke="gcp:", aks="azure-native:")
_AGREE: Final = timedelta(minutes=1)
_TIMEOUT: Final = 30  # seconds
_OFFLINE: Final = "It needs the network, and --offline was given."


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    Attributes:
        check: the check, such as `rights`.
        status: `skipped` if the check was not made.
        message: what was found, or why the check was not made.
        fix: the command that fixes a problem, or a sentence; empty without a problem.
    """

    check: str
    status: Status
    message: str
    fix: str = ""


def examine(
    files: StackFiles,
    recording: Recording,
    name: str,
    quotas: Callable[[], Sequence[QuotaCheck]],
    *,
    offline: bool = False,
    reading: bool = False,
) -> Iterator[Finding]:
    """Yield the findings of a stack.

    Args:
        recording: the stack, recorded.
        name: the stack's name, with its organization if it has one.
        quotas: compares the stack's quotas with the cloud's limits.
        offline: True for the checks that need no network alone.
        reading: True for the rights of `ebbtide drift`, instead of those of an update.
    """
    accounts = [
        Account(cloud, id_) for cloud in CloudKind for id_ in read_accounts(recording, cloud, files.config)
    ]
    clouds = list(dict.fromkeys(account.cloud for account in accounts))
    yield from _tools(clouds)
    yield from _passphrase(files)
    if reading:
        for account in accounts:  # of a login that only reads the stack
            roles = roles_of(needs_of(_types(recording, account.cloud)), reading=True)
            message = f"A login that only reads needs {and_list(sorted(set(roles.values())))} in {account}."
            yield Finding("roles", "ok", message)
    if offline:
        for check in ("stack", "cluster", "login", "APIs", "rights", "quotas", "clock"):
            yield Finding(check, "skipped", _OFFLINE)
        return
    yield from _stack(files, name, recording)
    logins = {account: _login(account) for account in accounts}
    reached = [account for account, login in logins.items() if login.status == "ok"]
    for account, login in logins.items():
        yield login
        if account in reached:
            needs = needs_of(_types(recording, account.cloud))
            yield from _account(account, needs, reading=reading)
        else:
            yield from (
                Finding(it, "skipped", f"There is no access to {account}.") for it in ("APIs", "rights")
            )
    if types := unknown(it for account in reached for it in _types(recording, account.cloud)):
        message = f"The needs of {and_list(types)} are not known."
        yield from (Finding(it, "skipped", message) for it in ("APIs", "rights"))
    yield _quotas(files.stack, reached, quotas)
    yield _clock()


def _tools(clouds: Iterable[CloudKind]) -> Iterator[Finding]:
    """Check the programs that an update runs."""
    if old := outdated():
        problem, _, fix = old.partition(" Install it with: ")
        yield Finding("tools", "problem", problem, fix)
    else:
        message = f"Python {platform.python_version()}, and Ebbtide's packages are new enough."
        yield Finding("tools", "ok", message)
    install = "https://www.pulumi.com/docs/install"
    pulumi = shutil.which("pulumi")
    found = _output([pulumi, "version"]) if pulumi else ""
    if not release(found):
        yield Finding("tools", "problem", "`pulumi` is not on PATH.", f"Install it: {install}")
    elif release(found) < release(_PULUMI):
        yield Finding(
            "tools", "problem", f"pulumi is {found}, older than {_PULUMI}.", f"Update it: {install}"
        )
    else:
        yield Finding("tools", "ok", f"pulumi {found}")
    for program, fix in (("git", "Install git."), *(_PLUGINS[cloud] for cloud in clouds)):
        if shutil.which(program):
            yield Finding("tools", "ok", program)
        else:
            yield Finding("tools", "problem", f"`{program}` is not on PATH.", fix)


def _output(command: Sequence[str]) -> str:
    """Return the first line that a program prints; empty if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter(done.stdout.splitlines()), "").removeprefix("v")


def _passphrase(files: StackFiles) -> Iterator[Finding]:
    """Check that the passphrase of a stack that has one is set."""
    written = yaml_file.read(files.config_file).value
    if not isinstance(written, dict) or "encryptionsalt" not in written:
        return
    file = os.environ.get(_PASSPHRASE[1])
    if file and not Path(file).is_file():
        yield Finding(
            "passphrase",
            "problem",
            f"{_PASSPHRASE[1]} names {file}, which is not there.",
            f"export {_PASSPHRASE[1]}=FILE",
        )
    elif file or os.environ.get(_PASSPHRASE[0]) is not None:
        yield Finding("passphrase", "ok", "It is set.")
    else:
        message = f"Stack {files.stack} is encrypted with a passphrase, and none is set."
        yield Finding("passphrase", "problem", message, f"export {_PASSPHRASE[0]}='the passphrase'")


def _stack(files: StackFiles, name: str, recording: Recording) -> Iterator[Finding]:
    """Check the login to the backend, the stack in it, its secrets, its cluster and the drivers there."""
    unread = Finding("cluster", "skipped", "The stack cannot be read.")
    if not shutil.which("pulumi"):
        yield Finding("stack", "skipped", "`pulumi` is not on PATH.")
        yield unread
        return
    fix = "pulumi login"
    try:
        backend = Backend(files.root)
        fix = f"pulumi stack init {name}"
        stack = backend.opened(name)
        fix = ""  # of a passphrase: the message has it
        outputs = stack.outputs()
    except EbbtideError as error:
        yield Finding("stack", "problem", str(error), fix)
        yield unread
        return
    yield Finding("stack", "ok", f"{name} is in the backend.")
    if "kubeconfig" not in outputs:
        yield Finding("cluster", "skipped", "It is not created yet.")
        return
    yield from _cluster(stack, outputs, recording)


def _cluster(stack: Stack, outputs: Mapping[str, object], recording: Recording) -> Iterator[Finding]:
    """Check that the cluster answers the user, and that no driver is installed twice on its GPU nodes."""
    try:
        with access.reaching_own("no work can be run", stack.name, stack.state()):
            api, profile = access.connected(outputs, "no work can be run")
            api.get("/version")
    except EbbtideError as error:
        yield Finding("cluster", "problem", str(error), "Log in, or wake the stack.")
        return
    yield Finding("cluster", "ok", f"{profile.cluster} answers.")
    if not device_plugins.has_gpus(recording):
        return
    try:
        with access.reaching("the DaemonSets of drivers are unknown"):
            found = list(device_plugins.conflicts(recording, api.items(device_plugins.DAEMON_SETS)))
    except EbbtideError as error:
        yield Finding("drivers", "skipped", str(error))
        return
    for conflict in found:
        yield Finding("drivers", "problem", conflict.problem, conflict.fix)
    if not found:
        yield Finding("drivers", "ok", "No DaemonSet installs drivers or device plugins a second time.")


def _login(account: Account) -> Finding:
    """Check the login to a project or subscription."""
    try:
        reason = access.reach([account]).reasons.get(account, "")
    except EbbtideError as error:
        reason = str(error).removeprefix("Nothing was changed: ")
    if reason:
        login = access.LOGINS[account.cloud]
        message, _, advice = reason.partition(" Log in with ")
        fix = advice.removesuffix(".").replace("`", "") or ("" if login in reason else login)
        return Finding("login", "problem", message, fix)
    return Finding("login", "ok", f"{account} answers.")


def _types(recording: Recording, cloud: CloudKind) -> list[str]:
    """Return the types of a cloud's resources that the stack creates."""
    return [item.type for item in recording if item.type.startswith(_PREFIXES[cloud]) and not item.read]


def _account(account: Account, needs: Sequence[Need], *, reading: bool) -> Iterator[Finding]:
    """Check the APIs and the rights that the stack needs in a project or subscription."""
    apis = {need.api for need in needs if need.api}
    roles = roles_of(needs, reading=reading)
    try:
        rights = connect.rights(account)
        disabled = rights.disabled(apis)
    except EbbtideError as error:
        yield Finding("APIs", "skipped", str(error))
    else:
        if disabled:
            are = "is" if len(disabled) == 1 else "are"
            message = f"{and_list(disabled)} {are} not enabled in {account}."
            yield Finding("APIs", "problem", message, _enable(account, disabled))
        else:
            enabled = f"All {len(apis)} are enabled in {account}." if apis else f"None needed in {account}."
            yield Finding("APIs", "ok", enabled)
    try:
        lacking = connect.rights(account).lacking(roles)
    except EbbtideError as error:
        yield Finding("rights", "skipped", str(error))
        return
    for role in dict.fromkeys(roles[permission] for permission in lacking):
        own = [permission for permission in lacking if roles[permission] == role]
        yield Finding("rights", "problem", f"You lack {and_list(own)} in {account}.", _grant(account, role))
    if not lacking:
        held = (
            f"You have all {len(roles)} permissions in {account}." if roles else f"None needed in {account}."
        )
        yield Finding("rights", "ok", held)


def _enable(account: Account, apis: Sequence[str]) -> str:
    return by_cloud(
        gke=f"gcloud services enable {' '.join(apis)} --project {account.id}",
        aks=" && ".join(
            f"az provider register --wait --namespace {api} --subscription {account.id}" for api in apis
        ),
    )[account.cloud]


def _grant(account: Account, role: str) -> str:
    """Return the command of an owner that grants a role."""
    return by_cloud(
        gke=f"gcloud projects add-iam-policy-binding {account.id} --member user:YOU --role {role}",
        aks=f'az role assignment create --assignee YOU --role "{role}" --scope /subscriptions/{account.id}',
    )[account.cloud]


def _quotas(stack: str, reached: Sequence[Account], quotas: Callable[[], Sequence[QuotaCheck]]) -> Finding:
    if not reached:
        return Finding("quotas", "skipped", "There is no access to a project or subscription.")
    try:
        checks = quotas()
    except EbbtideError as error:
        return Finding("quotas", "skipped", str(error))
    low, unread = (
        [f"{check.quota.name} in {check.quota.region}" for check in checks if check.verdict in verdicts]
        for verdicts in (("too low", "in use"), ("unknown",))
    )
    if low:
        message = f"Too low for all pools at their maximum: {and_list(low)}."
        return Finding("quotas", "problem", message, given_command().on_stack("quota", stack))
    if unread:
        return Finding("quotas", "skipped", f"The cloud tells no limit of {and_list(unread)}.")
    return Finding("quotas", "ok", "They suffice for all pools at their maximum.")


def _clock() -> Finding:
    """Compare the clock with that of the server which answered last."""
    ahead, server = clock.difference()
    if not server:
        return Finding("clock", "skipped", "No server has answered.")
    if abs(ahead) > _AGREE:
        side = "ahead of" if ahead > timedelta() else "behind"
        message = f"This machine's clock is {durations.rounded(abs(ahead))} {side} that of {server}."
        return Finding("clock", "problem", message, "Set it, for example with NTP.")
    return Finding("clock", "ok", f"It agrees with that of {server}.")
