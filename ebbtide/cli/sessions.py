"""The commands for interactive sessions: `shell` and `notebook`. Dependencies are imported on execution."""

import re
import secrets
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, Self

import typer

from ebbtide.cli.config import kubectl_command, namespace_of
from ebbtide.cli.consoles import ExitStatus, console, say
from ebbtide.cli.job import fields_of, with_defaults, with_shared_options
from ebbtide.cli.options import available_profile
from ebbtide.cli.run import UNRECORDED, Code, CodeInOption, Setup, with_code
from ebbtide.clients.kubernetes import Api
from ebbtide.errors import EbbtideError
from ebbtide.operations.engine.interrupts import ending_signals
from ebbtide.text import command_line, printable, several
from ebbtide.values.given_command import given_command
from ebbtide.values.paths import Object
from ebbtide.work.errors import ClusterError

if TYPE_CHECKING:
    from ebbtide.placement import Profile
    from ebbtide.work.runs.run import Plan


SessionName = Annotated[
    str,
    typer.Argument(
        metavar="[NAME]", help="Name of a session to return to, or of a new one; by default the folder's."
    ),
]
Idle = Annotated[
    str, typer.Option(metavar="TIME", help="Time without a process of yours after which it ends: 30m, 1h.")
]
_NO_TASK: Final = ("submit", "when", "retries", "fail_on", "keep_node", "format_")
"""Shared options of Jobs that a session does not have."""
_ENDED: Final = "command terminated with exit code "
"""Error output of kubectl after a command that failed, but not after a lost connection."""
_KILLED: Final = (137, 143)
_FORWARDING: Final = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ")
_PAUSE: Final = 1.0
_WATCH: Final = 5.0


class SessionError(EbbtideError):
    """A session cannot be used from this machine; the message has the reason and the fix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """A session on the cluster.

    Attributes:
        context: the kubeconfig's context; empty for the current one.
        profile: the cluster's profile; None if it is unknown.
        is_new: whether this command has created it.
        is_own: whether its user has.
    """

    api: Api
    job: Object
    context: str
    profile: "Profile | None"
    is_new: bool = False
    is_own: bool = True

    @classmethod
    def open(
        cls,
        kind: str,
        plan: "Callable[..., Plan]",
        name: str,
        code: Path,
        options: dict[str, Any],
        **own: Any,
    ) -> Self:
        """Return the session of a name, or create one.

        Args:
            plan: returns a new session.
            name: its name; empty for a new one.
            code: the folder of its code.
            options: the shared options.
            **own: its own options.
        """
        from ebbtide.work import submission
        from ebbtide.work.evidence import owner_of
        from ebbtide.work.runs import sessions
        from ebbtide.work.runs.folder import read_folder
        from ebbtide.work.runs.run import check_pods, user_of

        kubectl_command()
        context = options["context"]
        api = Api.of_user(context)
        place = namespace_of(api, options["namespace"])
        if name and (job := sessions.find(api, name, place, kind)):
            profile = available_profile(options["profile"], job["metadata"]["namespace"], context)
            is_own = owner_of(job) == user_of(api)
            session = cls(api=api, job=job, context=context, profile=profile, is_own=is_own)
            if reason := sessions.earlier_end(job):
                session.report_end(reason)
            say(
                f"{name} is {session.whose}, and keeps its own pool, image and code: options of this command "
                "do not apply."
            )
            return session
        cluster = with_defaults(options)
        folder = read_folder(code)
        if not options["queue"]:
            options["namespace"] = place
        recorded = {key: value for key, value in (options | own).items() if value and key not in UNRECORDED}
        with fields_of(name, None, options) as fields:
            made = plan(cluster, folder, user_of(api), recorded, **own, **fields)
        namespace = made.job["metadata"].get("namespace") or api.namespace
        submission.dry_run(api, namespace, made.job, *made.dependents)
        check_pods(api, made.job, namespace)
        manifest, _ = with_code(made, api, cluster, namespace, folder, options)
        job = submission.submit(api, manifest, *made.dependents)
        say(f"Job {job['metadata']['name']} is created, in namespace {namespace}.")
        if risk := sessions.reclaim_warning(cluster, options["pool"], options["queue"], namespace):
            say(risk, err=True)
        return cls(api=api, job=job, context=context, profile=cluster, is_new=True)

    @property
    def name(self) -> str:
        """Name of the Job."""
        return self.job["metadata"]["name"]

    @property
    def idle(self) -> str:
        """The time of its `--idle`."""
        from ebbtide.work.runs import sessions

        return sessions.idle_words(self.job)

    @property
    def whose(self) -> str:
        """Whose session it is."""
        from ebbtide.work.evidence import owner_of

        owner = printable(owner_of(self.job), one_line=True)
        return "your session" if self.is_own else f"a session of {owner}"

    @property
    def kubectl(self) -> list[str]:
        """Command of kubectl for its namespace."""
        return kubectl_command(self.job["metadata"]["namespace"], self.context)

    def command(self, verb: str) -> str:
        """Return the command line of an Ebbtide command for it."""
        return given_command().on_job(verb, self.name, self.job["metadata"]["namespace"])

    def wait(self) -> Object:
        """Wait until the pod runs, with the reasons of the wait; return the pod."""
        from ebbtide.cli.follow_progress import ProgressLines, narration
        from ebbtide.work.runs.sessions import wait_until_running

        namespace = self.job["metadata"]["namespace"]
        with narration(console(sys.stdout)) as show:
            lines = ProgressLines(self.api, self.name, namespace, self.profile, show)
            return wait_until_running(self.api, self.name, namespace, lines, show)

    def end_of(self, pod: Object, *, killed: bool = False) -> str:
        """Return why the pod has ended; empty if it runs, or the cluster is unreachable."""
        from ebbtide.work.runs import sessions

        try:
            return sessions.end_of(self.api, self.job, pod, killed=killed)
        except ClusterError as error:
            say(str(error), err=True)
            return ""

    def delete(self) -> None:
        """Delete the Job."""
        from ebbtide.work.runs import sessions

        sessions.delete(self.api, self.job)

    def report_end(self, reason: str) -> NoReturn:
        """Report why a session's pod has ended, and delete its Job if it is the user's own."""
        if self.is_own:
            self.delete()
            remains = "Its Job is deleted; the same command starts a new one."
        else:
            remains = f"It is {self.whose}, and its Job stays: write another name for one of your own."
        say(f"{self.name} has ended. {reason} {remains}", err=True)
        raise SystemExit(ExitStatus.FOUND)

    @contextmanager
    def deleting(self) -> Generator[None]:
        """Delete a Job that this command has created if the block fails or is interrupted."""
        try:
            yield
        except BaseException as error:
            if self.is_new:
                self.delete()
            if not isinstance(error, KeyboardInterrupt):
                raise
            say(f"Interrupted: Job {self.name} {'is deleted' if self.is_new else 'stays'}.", err=True)
            raise SystemExit(ExitStatus.INTERRUPTED) from None

    def leave(self, pod: Object, terminal: str) -> None:
        """Delete the Job after the end of a terminal, if it is the user's own and no other one is open.

        Args:
            terminal: name of the terminal.
        """
        from ebbtide.work.runs import sessions

        if not self.is_own:
            why = f"It is {self.whose}"
        elif (others := sessions.other_terminals(self.kubectl, pod, terminal)) is None:
            why = "Whether another terminal is open in it could not be read"
        elif others:
            why = f"{several(others, 'other terminal is', 'other terminals are')} open in it"
        else:
            self.delete()
            say(f"{self.name} has ended, and its Job is deleted.")
            return
        say(f"{why}, and its Job stays. {self.until_idle}")

    @property
    def until_idle(self) -> str:
        """Sentence about the end of a session that continues, and the commands for it."""
        return (
            f"It ends once no process of yours has run for {self.idle}.\nOpen another terminal: "
            f"{self.command('shell')}\nEnd it: {self.command('cancel')}"
        )


@partial(with_shared_options, without=_NO_TASK)
def shell(
    name: SessionName = "",
    *,
    code: Code = Path(),
    code_in: CodeInOption = None,
    setup: Setup = "",
    idle: Idle = "1h",
    **options: Any,
) -> None:
    """Open a terminal on a pod with the code of a folder.

    The pod is that of an ordinary Job, on a pool or in a queue, with the folder's files in /code. The Job is
    deleted with the end of its creator's last terminal. After a lost connection it ends once no process of
    yours has run for the time of --idle, and until then its name opens another terminal, also for colleagues,
    who delete nothing. A shell that waits for input does not count. Exit status 1: the pod ended first, or
    the connection was lost.
    """
    from ebbtide.work.runs import sessions

    if not sys.stdin.isatty():
        raise SessionError(
            "Standard input is not a terminal, and the shell would end at once: run a command with "
            f"`{command_line('run')}`."
        )
    own = {"idle": idle, "setup": setup, "code_in": code_in}
    with ending_signals():
        session = _Session.open(sessions.TERMINAL, sessions.session, name, code, options, **own)
        with session.deleting():
            pod = session.wait()
        terminal = secrets.token_hex(8)
        try:
            ended, status = _terminal(session, pod, terminal)
        except (KeyboardInterrupt, SystemExit) as error:
            with suppress(OSError):  # the terminal may be closed
                session.leave(pod, terminal)
            status = error.code if isinstance(error, SystemExit) else ExitStatus.INTERRUPTED
            raise SystemExit(status) from None
    reason = session.end_of(pod, killed=status in _KILLED)
    if reason:
        session.report_end(reason)
    if not ended:
        say(f"The connection to {session.name} was lost. {session.until_idle}", err=True)
        raise SystemExit(ExitStatus.FOUND)
    session.leave(pod, terminal)


def _terminal(session: _Session, pod: Object, terminal: str) -> tuple[bool, int]:
    """Run a shell in a pod; return whether it ended of itself, and its exit status."""
    from ebbtide.work.jobs import CONTAINER
    from ebbtide.work.runs.sessions import SHELL, presence

    words = [*session.kubectl, "exec", "-it", pod["metadata"]["name"], "-c", CONTAINER, "--", *SHELL]
    with presence(session.kubectl, pod, terminal):
        # Standard error is kubectl's own: on a terminal, that of the command is in standard output.
        ended = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - kubectl
    if ended.returncode == 0 or _ENDED in ended.stderr:
        return True, ended.returncode
    say(ended.stderr.strip(), err=True)
    return False, ended.returncode


@partial(with_shared_options, without=_NO_TASK)
def notebook(
    name: SessionName = "",
    *,
    code: Code = Path(),
    code_in: CodeInOption = None,
    setup: Setup = "",
    idle: Idle = "1h",
    port: Annotated[
        int, typer.Option(help="Port on this machine; by default a free one.", show_default=False)
    ] = 0,
    **options: Any,
) -> None:
    """Run JupyterLab on a pod, and open a port to it.

    The pod is that of an ordinary Job, on a pool or in a queue. Its notebooks are on the volume of --volume,
    or else in the folder's copy in /code, which is lost with the pod. Ctrl-C closes the port; the name opens
    it again. Jupyter ends kernels and terminals without activity for the time of --idle, and then itself; an
    open browser tab is not activity. Exit status 1: the pod ended.
    """
    from ebbtide.declaration.catalog.versions import PINS
    from ebbtide.work.runs import sessions

    own = {"idle": idle, "setup": setup, "code_in": code_in}
    plan = partial(sessions.notebook, version=PINS["jupyterlab"].version)
    with ending_signals():
        session = _Session.open(sessions.NOTEBOOK, plan, name, code, options, **own)
        with session.deleting():
            pod = session.wait()
            while not (token := sessions.read_token(session.kubectl, pod)):
                if reason := session.end_of(pod):
                    session.report_end(f"{reason} Its log: {session.command('logs')}")
                time.sleep(_PAUSE)
    try:
        port = _forward(session, pod, port, token, first=True)
        while not (reason := session.end_of(pod)):
            port = _forward(session, pod, port, token, first=False)
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        say(
            f"\nThe port is closed. {session.name} ends after {session.idle} without activity.\n"
            f"Open the port again: {session.command('notebook')}\nEnd it: {session.command('cancel')}",
            err=True,
        )
        raise SystemExit(ExitStatus.INTERRUPTED) from None
    session.report_end(reason)


def _forward(session: _Session, pod: Object, port: int, token: str, *, first: bool) -> int:
    """Forward a port to JupyterLab until the connection is lost or the pod ends, and return the port.

    Raises:
        SessionError: the first connection fails.
    """
    from ebbtide.work.runs.sessions import PORT

    words = ["port-forward", f"pod/{pod['metadata']['name']}", f"{port or ''}:{PORT}"]
    with subprocess.Popen(  # noqa: S603 - kubectl
        [*session.kubectl, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as forward:
        try:
            lines = iter(forward.stdout or ())
            line = next(lines, "")
            if (match := _FORWARDING.match(line)) is None:
                if first:
                    raise SessionError(
                        f"No port to {session.name} can be opened: {line.strip()} Open it again: "
                        f"{session.command('notebook')}. End it: {session.command('cancel')}."
                    )
                return port
            if first:
                say(f"JupyterLab: http://127.0.0.1:{match[1]}/lab?token={token}\nCtrl-C closes the port.")
            # kubectl writes a line per connection, and does not notice the end of the pod.
            threading.Thread(target=deque, args=(lines, 0), daemon=True).start()
            while forward.poll() is None and not session.end_of(pod):
                time.sleep(_WATCH)
            return int(match[1])
        finally:
            forward.terminate()
