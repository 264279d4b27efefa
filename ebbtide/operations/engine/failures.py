"""Failures of the engine: other users' locks, messages for users, and advice on what failed."""

import getpass
import os
import platform
import re
import socket
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from pulumi.automation import errors

from ebbtide.analysis.drift.differences import ReadResource, differences_of, undo
from ebbtide.analysis.recording.recording import urn_name
from ebbtide.clients.kubernetes.objects import part, parts
from ebbtide.declaration.model.addons import ADD_ONS
from ebbtide.errors import EbbtideError
from ebbtide.text import and_list
from ebbtide.values.given_command import given_command

_LOCK: Final = re.compile(r"created by (?P<user>[^\s@]+)@(?P<host>\S+) \(pid (?P<pid>\d+)\)")
_STEP: Final = 1.0
_T = TypeVar("_T")
_KNOWN: Final[Mapping[str, str]] = {
    "incorrect passphrase": (
        "PULUMI_CONFIG_PASSPHRASE is not the passphrase of stack {stack}: nothing was changed."
    ),
    "passphrase must be set": (
        "Stack {stack} is encrypted with a passphrase, and none is set: write it to "
        "PULUMI_CONFIG_PASSPHRASE, or name its file in PULUMI_CONFIG_PASSPHRASE_FILE."
    ),
    "PULUMI_ACCESS_TOKEN must be set": (
        "`pulumi` is not logged in to a backend: run `pulumi login`, or set PULUMI_BACKEND_URL."
    ),
}
"""Messages of pulumi 3.259 (pkg/secrets/passphrase, pkg/backend/httpstate), and the replacements."""
_ERROR: Final = re.compile(r"^error: ", re.MULTILINE)
_LINES: Final = 6
"""Lines of an error that are shown."""
_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\)|^  File \"", re.MULTILINE)
_RPC_DETAILS: Final = re.compile(r"^\s*details = \"(.*)\"$", re.MULTILINE)
_EXCEPTION: Final = re.compile(
    r"^[\w.]+(?:: .*)?(?:\n(?!Traceback|  File |During |The above )\S.*)*", re.MULTILINE
)
"""The last lines of a traceback: an exception's type and message."""
_NOISE: Final = re.compile(
    r"sdk\.helper_schema:|^update failed$|resource monitor (?:has terminated|shut down)", re.IGNORECASE
)
"""Second reports of a failure: by the bridge of Terraform providers, which logs it too, and by the engine
when it stops (pulumi-terraform-bridge, pkg/tfshim/sdk-v2; pulumi 3.259, pkg/resource/deploy)."""
_HEADING: Final = re.compile(r"\d+ errors? occurred:\s*\*\s*")
_LOGINS: Final = {
    "executable gke-gcloud-auth-plugin failed": "gcloud auth login",
    "executable kubelogin failed|az login|require the (?:az|azure) cli for authentication": "az login",
    "could not find default credentials|invalid_grant|invalid_rapt": "gcloud auth application-default login",
}
"""Commands that log in, by the message without a login: of the credential plugins of kubeconfigs (client-go),
of Azure's provider (pulumi-azure-native#3349), and of Google's (golang.org/x/oauth2/google)."""
_ADD_ON_NAMESPACES: Final = "|".join(kind.spec.namespace for kind in ADD_ONS.values() if kind.spec.namespace)


class OperationError(EbbtideError):
    """The operation was not performed; the message has the reason and the fix."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock of a stack.

    Attributes:
        user: user of its process.
        host: machine of its process.
        pid: id of its process.
    """

    user: str
    host: str
    pid: int

    def __str__(self) -> str:
        return f"{self.user} on {self.host} (process {self.pid})"

    @property
    def is_local(self) -> bool:
        """True if its process is, or was, of this user on this machine."""
        return self.host == socket.gethostname() and self.user == getpass.getuser()

    @property
    def is_held(self) -> bool:
        """True if its process is still running an engine. On Windows, where signal 0 is Ctrl-C, any lock
        counts as held (docs.python.org, os.kill, 2026)."""
        if platform.system() == "Windows":
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        program = Path(f"/proc/{self.pid}/comm")
        state = Path(f"/proc/{self.pid}/stat")
        try:
            # A zombie process still has its id, and the id may have been reused by another process.
            dead = state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
            return not dead and "pulumi" in program.read_text(encoding="utf-8")
        except OSError:
            return True


class LockedError(OperationError):
    """Another update of the stack is in progress.

    Attributes:
        locks: the stack's locks; empty if the backend does not describe them.
    """

    def __init__(self, locks: Sequence[Lock], message: str) -> None:
        super().__init__(message)
        self.locks = tuple(locks)


def locks_of(error: str) -> list[Lock]:
    """Parse the engine's message about a locked stack."""
    return [Lock(match["user"], match["host"], int(match["pid"])) for match in _LOCK.finditer(error)]


def unlocking(run: Callable[[], _T], unlock: Callable[[], object], log: Callable[[str], object]) -> _T:
    """Run the engine, once other engine runs of this user on this machine have ended.

    Args:
        unlock: removes the stack's locks.
        log: called with a message about each lock that it waits for or removes.

    Raises:
        LockedError: a lock belongs to another user or machine.
    """
    announced: tuple[Lock, ...] = ()
    while True:
        try:
            return run()
        except LockedError as error:
            if not error.locks or not all(lock.is_local for lock in error.locks):
                raise
            held = tuple(lock for lock in error.locks if lock.is_held)
            if not held:
                pids = ", ".join(str(lock.pid) for lock in error.locks)
                log(f"The engine that locked the stack (process {pids}) has ended; its lock is removed.")
                unlock()
            elif held != announced:
                log(f"Waiting for another update of the stack, by {held[0]}.")
                announced = held
            if held:
                time.sleep(_STEP)


@contextmanager
def explained(stack: str, diagnostics: list[str] | None = None) -> Generator[None]:
    """Turn a failed command into an error.

    Args:
        diagnostics: the engine's errors so far; if there are none, the command's output is added to it.

    Raises:
        OperationError: the command failed before the engine started, or there are no diagnostics.
    """
    try:
        yield
    except FileNotFoundError:
        raise OperationError(
            "`pulumi` is not installed: install it (https://www.pulumi.com/docs/install), or put it on PATH."
        ) from None
    except errors.InvalidVersionError as error:
        raise OperationError(str(error)) from None
    except errors.StackNotFoundError:
        raise OperationError(
            f"There is no stack {stack} in the backend that `pulumi` is logged in to: `pulumi stack ls "
            f"--all` lists the existing ones, and `pulumi stack init {stack}` creates it. If its cluster "
            "exists and the state is lost, adopt the cluster after that (docs/adopting.md, A lost state)."
        ) from None
    except errors.ConcurrentUpdateError as error:
        locks = locks_of(str(error))
        by = f", by {and_list(map(str, locks))}" if locks else ""
        raise LockedError(
            locks,
            f"Another update of stack {stack} is in progress{by}. Wait for its end; if it no longer runs, "
            f"unlock the stack with `pulumi cancel --stack {stack}`.",
        ) from None
    except errors.CommandError as error:
        output = output_of(error)
        for message, sentence in _KNOWN.items():
            if message in output:
                raise OperationError(sentence.format(stack=stack)) from None
        if diagnostics is None:
            raise OperationError(f"`pulumi` failed: {output}") from None
        if not diagnostics:
            diagnostics.append(output)


def output_of(error: errors.CommandError) -> str:
    """Return the standard error of `pulumi`, or else its standard output, from its first error on: warnings
    stand before it, such as that a plugin is from PATH."""
    code, _, rest = str(error).partition("\n stdout: ")
    stdout, _, stderr = rest.partition("\n stderr: ")
    output = stderr.strip() or stdout.strip() or code.strip()
    return _ERROR.split(output, maxsplit=1)[-1]


class _Cause(NamedTuple):
    pattern: str
    advice: str


_CAUSES: Final = (
    _Cause(
        r"Power State\(Stopped\)|Kubernetes cluster is unreachable",
        "The cluster is stopped or does not answer. If it sleeps, wake it first with: {wake}",
    ),
    _Cause(
        "SERVICE_DISABLED|has not been used in project|MissingSubscriptionRegistration|not registered to use",
        "An API is not enabled. Enable it (`gcloud services enable NAME`, or `az provider register "
        "--namespace NAME`), wait a few minutes, and run the same command again. `{doctor}` lists every one.",
    ),
    _Cause(
        "ZONE_RESOURCE_POOL_EXHAUSTED|GCE_STOCKOUT|does not have enough resources|SkuNotAvailable|"
        "AllocationFailed|OverconstrainedAllocation",
        "The cloud is out of stock of these machines there. Try again later, or declare other zones, "
        "another machine or another capacity.",
    ),
    _Cause(
        r"quota[\s\w']*exceeded|exceed\w* \w*\s?quota|insufficient.*quota|quota limits",
        "A quota is too low. `{quota}` shows which limit to request.",
    ),
    _Cause(
        "Error 403|PERMISSION_DENIED|AuthorizationFailed|does not have authorization|is forbidden",
        "A permission is missing, which the message names. Ask the owner of the project or subscription for "
        "a role with it, and run the same command again. `{doctor}` lists every one.",
    ),
    _Cause(
        r"conflicts? with \"|field manager|Apply failed with \d+ conflict",
        "Another field manager owns a field of this Kubernetes object, as after `kubectl scale` or another "
        "program's change. Set it there to the declared value, which does not conflict, and run the same "
        "command again.",
    ),
    _Cause(
        f'namespaces "({_ADD_ON_NAMESPACES})" already exists',
        "The cluster has this add-on. Write `addons: {{NAME: {{existing: true}}}}` to use it as it is.",
    ),
    *(
        _Cause(
            f"{kind}.*(not found|does not exist)|(not found|does not exist).*{kind}",
            f"The cluster has no {add_on.spec.title}. Remove `existing: true` to install it.",
        )
        for add_on in ADD_ONS.values()
        for kind in add_on.spec.definitions
    ),
    _Cause(
        "-manager-config.*(not found|does not exist)|(not found|does not exist).*-manager-config",
        "The configuration of the cluster's Kueue was not found: it is not from Kueue's chart or manifests. "
        "Remove the queues, or have one of these installed.",
    ),
    _Cause(
        'namespaces "[^"]*" already exists',
        "The namespace exists, and not from this stack. Write `namespace: {{name: NAME, create: false}}` in "
        "the team to use it as it is, or choose another name.",
    ),
    _Cause(
        "RoleAssignmentExists",
        "The role is assigned already, as by a stack whose state is lost. Delete the assignment, whose id "
        "the message has (`az role assignment delete --ids SCOPE/providers/Microsoft.Authorization/"
        "roleAssignments/ID`), and run the same command again, which assigns it anew.",
    ),
    _Cause(
        "already ?exists|Error 409",
        "It exists in the cloud but not in the stack. To adopt it, add its type, name and id to the file "
        "that `adopt` names in the declaration, as `ebbtide adopt` writes it. Otherwise delete it there, or "
        "declare another name.",
    ),
)
"""Patterns of error messages with advice, the most specific first. Sources: the errors that the rehearsal's
fake clouds return, with their origins there."""


def advice(stack: str, errors: Iterable[str]) -> Iterator[str]:
    """Return advice for the errors of a failed update, without duplicates."""
    causes = (
        next((cause for cause in _CAUSES if re.search(cause.pattern, error, re.IGNORECASE)), None)
        for error in errors
    )
    commands = {command: given_command().on_stack(command, stack) for command in ("doctor", "quota", "wake")}
    for cause in dict.fromkeys(causes):
        if cause is not None:
            yield cause.advice.format(**commands)


def conflicts(deployment: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the fields of Kubernetes objects that another field manager owns and that an update could
    therefore not set, each with what sets it back.

    Args:
        deployment: the `deployment` of the state that the failed update has left.
        declared: the inputs of the resources that it began to update, by URN.
    """
    for item in parts(deployment, "resources"):
        urn, type_, id_ = str(item["urn"]), str(item["type"]), str(item.get("id"))
        if item.get("initErrors") and urn in declared and type_.startswith("kubernetes:"):
            inputs, outputs = declared[urn], part(item, "outputs")
            failed = ReadResource(urn, type_, id_, inputs, outputs, inputs, outputs, has_failed=True)
            for found in differences_of(failed):
                if found.is_conflict:
                    yield f"{urn_name(urn)} {found.path}: {undo(type_, id_, found.path, found.old)}"


def missing_login(errors: Iterable[str]) -> str:
    """Return the command that logs in, if an error is due to a missing or expired login; empty otherwise."""
    text = "\n".join(errors)
    logins = (login for pattern, login in _LOGINS.items() if re.search(pattern, text, re.IGNORECASE))
    return next(logins, "")


def causes(errors: Sequence[str]) -> list[str]:
    """Return the causes among the errors of an engine run, in brief.

    A failed resource also ends the program, whose traceback then has nothing to add; otherwise the last line
    of the traceback is the cause.

    Args:
        errors: the engine's errors, each beginning with the name of its resource.
    """
    reports = [error for error in errors if not _TRACEBACK.search(error)]
    own = [error for error in reports if not _NOISE.search(error)]
    return list(dict.fromkeys(_brief(error) for error in own or reports or map(_raised, errors)))


def _brief(error: str) -> str:
    lines = [line for line in _HEADING.sub("", error).splitlines() if line.strip()]
    return "\n".join([*lines[:_LINES], *(["…"] if len(lines) > _LINES else [])])


def _raised(error: str) -> str:
    """Return the exception of a program's traceback."""
    if details := _RPC_DETAILS.findall(error):
        return details[-1]
    found = [match[0] for match in _EXCEPTION.finditer(error)]
    return f"The program failed: {found[-1]}" if found else error


def kept(stack: str, errors: Iterable[str]) -> str:
    """Write all errors to a new file that only its owner can read; return its path."""
    descriptor, name = tempfile.mkstemp(prefix=f"ebbtide-{stack.rpartition('/')[2]}-", suffix=".log")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{error}\n\n" for error in errors)
    return name


def explanation(stack: str, errors: Sequence[str], *, verbose: bool = False) -> Iterator[str]:
    """Yield the lines about a failed engine run: causes, advice, and where all errors are.

    Args:
        verbose: True for all errors as the engine reports them.
    """
    login, brief = missing_login(errors), causes(errors)
    if verbose:
        yield from errors
    elif login:
        yield f"The engine found no valid login: log in with `{login}`."
    else:
        yield from brief
    if not login:
        yield from advice(stack, errors)
    if not verbose and (login or brief != list(errors)):
        yield f"All errors of the engine: {kept(stack, errors)}"
