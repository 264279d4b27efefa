"""Interactive sessions: a Job whose pod runs nothing but what its user starts in it, or JupyterLab.

A session ends when none of its user's processes has run for a while, or by Jupyter's own culling. A terminal
that waits for input is no such process. Its pod is not replaced: what ran in it would be lost.
"""

import json
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from subprocess import DEVNULL, PIPE
from typing import Any, Final

from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import Object, condition, disrupted, phase_of, text
from ebbtide.placement import Profile
from ebbtide.text import or_list
from ebbtide.values import durations
from ebbtide.work.arguments import seconds
from ebbtide.work.errors import ClusterError, Problems, answered
from ebbtide.work.jobs import CONTAINER
from ebbtide.work.kinds import JOB, find_job
from ebbtide.work.progress import Progress, failure_text
from ebbtide.work.runs.code import DIRECTORY
from ebbtide.work.runs.folder import Folder
from ebbtide.work.runs.run import COMMAND, Plan, parameters_of, plan
from ebbtide.work.submission import follow

TERMINAL, NOTEBOOK = "a terminal", "JupyterLab"
"""Kinds of sessions, as in the annotation `COMMAND` of their Jobs."""
SHELL: Final = ("sh", "-c", "if command -v bash >/dev/null; then exec bash; else exec sh; fi")
"""Command of a terminal."""
_MARK: Final = "EBBTIDE_SESSION"
_LONGEST_STEP: Final = 15
_LEAST_IDLE: Final = 5
_LAST: Final = 10.0
"""Seconds until the status of an ended pod is written."""
_PAUSE: Final = 0.5
_COUNTED: Final = 30.0
"""Time limit in seconds for a command in the pod."""

_KEEPER: Final = f"""
trap 'exit 143' TERM
idle=$1 step=$2 quiet=0
while [ "$quiet" -lt "$idle" ]; do
  sleep "$step" &
  wait $!
  quiet=$((quiet + step))
  for process in /proc/[0-9]*; do
    id=${{process#/proc/}}
    [ "$id" != "$$" ] && grep -qs "{_MARK}=${_MARK}" "$process/environ" || continue
    read -r status 2>/dev/null <"$process/stat" || continue
    case $status in *'(tmux'* | *'(screen)'* | *'(SCREEN)'*) continue ;; esac
    set -- ${{status##*) }}
    [ "$4" = "$id" ] && [ "$5" != 0 ] && continue
    quiet=0
    break
  done
done
"""
# The container's processes have its environment. The fields of /proc/PID/stat after the name are state,
# parent, group, session and terminal (proc_pid_stat(5)): the leader of a session with a terminal is a shell,
# which alone does not keep the session.


_BEAT: Final = 20.0
_OPEN: Final = ".ebbtide-terminal-"
_PRESENT: Final = f"""
file=${{TMPDIR:-/tmp}}/{_OPEN}$0
trap 'rm -f "$file"' EXIT
while read -r beat; do : >"$file" && echo; done
"""
_TERMINALS: Final = f'find "${{TMPDIR:-/tmp}}" -maxdepth 1 -name "{_OPEN}*" -mmin -2'
# The shell of a lost connection stays in the pod, so a process on the user's machine shows that a terminal is
# open. In the pod it is not a process of the session, which it would keep.
PORT: Final = 8888
"""Port of JupyterLab on the loopback interface of its pod."""
_FILES: Final = "${TMPDIR:-/tmp}/ebbtide-jupyter"
_START: Final = """
import json, os, pathlib, sys

# Installed packages stand behind the image's own, in kernels too.
packages = os.environ["EBBTIDE_PACKAGES"]
sys.path.append(packages)
kernels = pathlib.Path(packages, "share/jupyter/kernels/python3")
if kernels.is_dir():
    program = f"import sys; sys.path.append({packages!r}); import ipykernel.kernelapp as app; "
    words = [sys.executable, "-c", program + "app.launch_new_instance()", "-f", "{connection_file}"]
    kernel = {"argv": words, "display_name": "Python 3", "language": "python"}
    (kernels / "kernel.json").write_text(json.dumps(kernel))

# A request that only reads is not activity: an open tab polls (jupyterlab/jupyterlab#19796).
from jupyter_server.base.handlers import APIHandler
from jupyterlab.labapp import main

update = APIHandler.update_api_activity
APIHandler.update_api_activity = lambda self: None if self.request.method == "GET" else update(self)
main()
"""
# An image without JupyterLab gets it from PyPI, into a directory that any user can write.
_SCRIPT: Final = f"""
files={_FILES}
export EBBTIDE_PACKAGES="$files/packages" IPYTHONDIR="$files/ipython"
export JUPYTER_RUNTIME_DIR="$files/runtime" JUPYTER_CONFIG_DIR="$files/config" JUPYTER_DATA_DIR="$files/data"
if ! python3 -c 'import jupyterlab' 2>/dev/null; then
  python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts \\
    --target "$EBBTIDE_PACKAGES" "jupyterlab==$1"
  export JUPYTERLAB_DIR="$EBBTIDE_PACKAGES/share/jupyter/lab"
  export JUPYTER_CONFIG_PATH="$EBBTIDE_PACKAGES/etc/jupyter" JUPYTER_PATH="$EBBTIDE_PACKAGES/share/jupyter"
fi
shift
exec python3 -c "$0" "$@"
"""
_CULLING: Final = (
    "ServerApp.shutdown_no_activity_timeout",
    "MappingKernelManager.cull_idle_timeout",
    "TerminalManager.cull_inactive_timeout",
)
_LONGEST_INTERVAL: Final = 60


def session(
    profile: Profile, folder: Folder, user: str, parameters: Mapping[str, Any], idle: str, **fields: Any
) -> Plan:
    """Return a session for terminals.

    Args:
        parameters: the options, for the Job's annotation.
        idle: time without a process of the user after which the session ends.
        **fields: as for `plan`, without the command.

    Raises:
        WorkloadError: the Job cannot run as described; the message lists all problems.
    """
    limit = idle_seconds(idle)
    step = max(1, min(_LONGEST_STEP, limit // 4))
    # Kubernetes reads $$ as $.
    command = ("sh", "-c", _KEEPER.replace("$", "$$"), "keeper", str(limit), str(step))
    env = {**fields.pop("env", {}), _MARK: secrets.token_hex(8)}
    return _planned(profile, folder, user, parameters, TERMINAL, command=command, env=env, **fields)


def _planned(
    profile: Profile,
    folder: Folder,
    user: str,
    parameters: Mapping[str, Any],
    kind: str,
    **fields: Any,
) -> Plan:
    """Return a session, whose pod is not replaced."""
    made = plan(profile, folder, user, parameters, retries=0, keep_node=True, **fields)
    made.job["metadata"]["annotations"][COMMAND] = kind
    lost = {"type": "DisruptionTarget", "status": "True"}
    made.job["spec"]["podFailurePolicy"] = {"rules": [{"action": "FailJob", "onPodConditions": [lost]}]}
    return made


def reclaim_warning(profile: Profile, pool: str, queue: str, namespace: str) -> str:
    """Return a warning if the cloud may reclaim the node of a session; empty if it never does.

    Args:
        pool: the session's pool; empty for a queue.

    Raises:
        ProfileError: the cluster has no such pool or queue.
    """
    pools = profile.pools_of(pool, "" if pool else queue, namespace)
    reclaimed = [item.name for item in pools if item.interruptible]
    if not reclaimed:
        return ""
    lasting = [item.name for item in profile.pools if item.role == "work" and item.capacity == "on-demand"]
    instead = f"--pool {or_list(lasting)}" if lasting else "an on-demand pool"
    return (
        f"The cloud may reclaim a node of {or_list(reclaimed)} at any time. The session ends with it, and "
        f"files outside of a volume are lost. Use {instead}, or keep files with --volume."
    )


def find(api: Api, name: str, namespace: str, kind: str) -> Object | None:
    """Return the Job of an existing session; None if there is no session of the name and the kind.

    Raises:
        ClusterError: the cluster is unreachable, or reading is forbidden.
    """
    job = find_job(api, name, namespace)
    is_session = job is not None and text(job, "metadata", "annotations", COMMAND) == kind
    return job if is_session else None


def idle_seconds(idle: str) -> int:
    """Return the seconds of `--idle`.

    Raises:
        WorkloadError: it is not a duration, or too short.
    """
    problems, limit = Problems(), 0
    with problems.collecting():
        limit = seconds("idle", idle)
        problems.check(
            limit >= _LEAST_IDLE,
            f"idle is {idle}, and the session would end before its first command: write 1h, or at least "
            f"{_LEAST_IDLE}s.",
        )
    problems.end()
    return limit


def wait_until_running(
    api: Api,
    name: str,
    namespace: str,
    on_progress: Callable[[Progress], Any],
    on_timeout: Callable[[str], Any],
) -> Object:
    """Wait until a session's pod runs, and return the pod.

    Raises:
        ClusterError: the Job failed or was deleted, or the API server stays unresponsive.
    """
    snapshot, current = follow(api, name, namespace, on_progress, on_timeout, until_running=True)
    running = [pod for pod in snapshot.pods if phase_of(pod) == "Running"]
    if current.over or not running:
        pods = [failure_text(pod) for pod in snapshot.pods if phase_of(pod) == "Failed"]
        reason = next(iter(pods), current.reason) or current.phase
        raise ClusterError(
            f"Job {name} in namespace {namespace} ended before its pod could be used: {reason}"
        )
    return running[0]


@contextmanager
def presence(kubectl: Sequence[str], pod: Object, terminal: str) -> Generator[None]:
    """Show in a session's pod that a terminal is open, during a block.

    Args:
        kubectl: the command of kubectl, with the pod's namespace.
    """
    words = _in_pod(kubectl, pod, f'{_MARK}=; exec sh -c "$1" "$0"', terminal, _PRESENT)
    shown, ended = threading.Event(), threading.Event()

    def show() -> None:
        while not ended.is_set():
            with (
                suppress(OSError),  # the connection is lost
                subprocess.Popen(  # noqa: S603 - kubectl
                    words, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
                ) as process,
            ):
                assert process.stdin and process.stdout  # noqa: S101, PT018 - pipes
                while process.poll() is None:
                    process.stdin.write(b"\n")
                    process.stdin.flush()
                    process.stdout.readline()
                    shown.set()
                    if ended.wait(_BEAT):
                        return
            shown.set()
            ended.wait(_PAUSE)

    threading.Thread(target=show, daemon=True).start()
    shown.wait(_COUNTED)
    try:
        yield
    finally:
        ended.set()


def other_terminals(kubectl: Sequence[str], pod: Object, terminal: str) -> int | None:
    """Return the number of open terminals in a session's pod; None if it cannot be read.

    Args:
        kubectl: the command of kubectl, with the pod's namespace.
        terminal: name of the one that has ended, which is not counted.
    """
    words = _in_pod(kubectl, pod, _TERMINALS)
    try:
        result = subprocess.run(words, capture_output=True, text=True, timeout=_COUNTED, check=True)  # noqa: S603 - kubectl
    except subprocess.SubprocessError:
        return None
    return sum(not line.endswith(f"{_OPEN}{terminal}") for line in result.stdout.splitlines())


def _in_pod(kubectl: Sequence[str], pod: Object, *script: str) -> list[str]:
    """Return the command that runs a shell script in a session's pod."""
    return [*kubectl, "exec", "-i", pod["metadata"]["name"], "-c", CONTAINER, "--", "sh", "-c", *script]


def idle_words(job: Object) -> str:
    """Return the time after which a session ends that no process of its user keeps, in words."""
    try:
        return durations.in_words(durations.parse(parameters_of(job).get("idle")))
    except ValueError:
        return "the time of its --idle"


def idle_end(job: Object) -> str:
    """Return why the program of a session's pod has ended, as a sentence."""
    limit = idle_words(job)
    if text(job, "metadata", "annotations", COMMAND) == NOTEBOOK:
        return f"JupyterLab had no activity for {limit} (--idle), or was shut down in the browser."
    return f"No process of its user had run for {limit} (--idle)."


def earlier_end(job: Object) -> str:
    """Return why an existing session has ended, as a sentence; empty if it has not."""
    if condition(job, "Complete"):
        return idle_end(job)
    failed = condition(job, "Failed")
    return f"Its pod failed or was lost: {text(failed, 'message').rstrip('.')}." if failed else ""


def end_of(api: Api, job: Object, pod: Object, *, killed: bool) -> str:
    """Return why a session's pod has ended, as a sentence; empty if it still runs.

    Args:
        killed: a command in the pod was killed, possibly with the pod: its status may follow.

    Raises:
        ClusterError: the cluster is unreachable.
    """
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    deadline = time.monotonic() + (_LAST if killed else 0)
    while True:
        with answered():
            current = api.find(path)
        if current is None or current["metadata"]["uid"] != metadata["uid"]:
            return "Its pod was deleted."
        if disrupted(current):
            return "Its pod was lost to a disruption of its node, such as the preemption of a spot node."
        if phase_of(current) == "Succeeded":
            return idle_end(job)
        if phase_of(current) == "Failed":
            return f"Its pod failed: {failure_text(current)}."
        if "deletionTimestamp" in current["metadata"]:
            return "Its pod is being deleted."
        if time.monotonic() >= deadline:
            return ""
        time.sleep(_PAUSE)


def delete(api: Api, job: Object) -> None:
    """Delete the Job of a session, unless another has its name.

    Raises:
        ClusterError: the cluster is unreachable, or refuses it.
    """
    metadata = job["metadata"]
    path = f"{JOB.path.format(metadata['namespace'])}/{metadata['name']}"
    with answered():
        api.delete(path, uid=metadata["uid"], propagationPolicy="Background")


def notebook(
    profile: Profile,
    folder: Folder,
    user: str,
    parameters: Mapping[str, Any],
    idle: str,
    *,
    version: str,
    **fields: Any,
) -> Plan:
    """Return a session with JupyterLab.

    Notebooks are kept on the volume, if the task mounts one, and else in the folder's copy in the pod.

    Args:
        parameters: the options, for the Job's annotation.
        idle: time without activity after which kernels, terminals and then the server end.
        version: version of JupyterLab for an image without it.
        **fields: as for `plan`, without the command.

    Raises:
        WorkloadError: the Job cannot run as described; the message lists all problems.
    """
    limit = idle_seconds(idle)
    interval = min(_LONGEST_INTERVAL, limit)
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": PORT,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": fields.get("mount_path") if fields.get("volume") else DIRECTORY,
        **dict.fromkeys(_CULLING, limit),
        "MappingKernelManager.cull_interval": interval,
        "MappingKernelManager.cull_connected": True,
        "TerminalManager.cull_interval": interval,
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    command = (
        "sh",
        "-ec",
        _SCRIPT.replace("$", "$$"),
        _START,
        version,
        "--no-browser",
        "--allow-root",
        *words,
    )
    made = _planned(profile, folder, user, parameters, NOTEBOOK, command=command, **fields)
    (container,) = made.job["spec"]["template"]["spec"]["containers"]
    container["ports"] = [{"name": "jupyter", "containerPort": PORT}]
    return made


def read_token(kubectl: Sequence[str], pod: Object) -> str:
    """Return the token of JupyterLab in a pod, from the file that the server writes; empty before its start.

    Args:
        kubectl: the command of kubectl, with the pod's namespace.
    """
    words = ["exec", pod["metadata"]["name"], "-c", CONTAINER, "--"]
    script = f'cat "{_FILES}/runtime"/jpserver-*.json'
    result = subprocess.run(  # noqa: S603 - kubectl
        [*kubectl, *words, "sh", "-c", script], capture_output=True, text=True, check=False
    )
    try:
        return str(json.loads(result.stdout)["token"])
    except (ValueError, KeyError):
        return ""
