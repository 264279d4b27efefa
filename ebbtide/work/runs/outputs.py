"""Outputs of Jobs: the folder on a volume or in a bucket, and the copy of its files to this machine."""

import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import Object, phase_of, text
from ebbtide.placement import Profile
from ebbtide.work.errors import ClusterError, WorkloadError, answered
from ebbtide.work.jobs import CONTAINER, job
from ebbtide.work.kinds import JOB, find_job
from ebbtide.work.runs.archives import ArchiveError, Extracted, extract
from ebbtide.work.runs.folder import application, name_of
from ebbtide.work.runs.run import described, parameters_of
from ebbtide.work.volumes import OUTPUTS, outputs_folder

_PATH: Final = "/outputs"
LIFE: Final = 600
"""Seconds after which a reader ends whose command does not extend its life any more."""
_BEAT: Final = 120.0
_SAME: Final[Mapping[str, type]] = {
    "pool": str,
    "queue": str,
    "image": str,
    "image_pull_secrets": list,
    "run_as_user": int,
    "service_account": str,
    "volume": str,
}
"""Options of a run that its reader has too, with their types."""
_MISSING: Final = 66
_CHANGED: Final = "command terminated with exit code 1\n"
"""End of kubectl's error output after tar read a file that changed (GNU tar manual, Return Values)."""
_LAST: Final = 10.0
"""Seconds until kubectl ends after its output."""
_REST: Final = 1 << 20
"""Bytes that may follow the end of an archive; tar fills its last record."""
_MESSAGE: Final = 1 << 16
"""Bytes of kubectl's error output that are read."""
_SEND: Final = f"""
cd "${OUTPUTS}" 2>/dev/null || exit {_MISSING}
if [ -d "./$1" ]; then cd "./$1" && set -- .
elif [ -e "./$1" ]; then cd "$(dirname "./$1")" && set -- "$(basename "./$1")"
else ls >&2; exit {_MISSING}
fi
if command -v tar >/dev/null; then
  case $(tar --version 2>/dev/null) in *'GNU tar'*) exec tar --hard-dereference -cf - -- "$1" ;; esac
  exec tar -cf - -- "$1"
fi
exec python3 -c 'import sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
    archive.add(sys.argv[1])' "$1"
"""
# An image without tar may still have Python. Only GNU's tar sends the files of hard links.


@dataclass(frozen=True, slots=True)
class Copied:
    """Files that were copied.

    Attributes:
        extracted: the files, and what was not copied.
        warning: message about files that changed while they were read; empty for none.
    """

    extracted: Extracted
    warning: str = ""


def parse(source: str) -> tuple[str, str]:
    """Return the name of a Job and the path in its outputs from `NAME:PATH`.

    Raises:
        WorkloadError: it has another form.
    """
    name, colon, path = source.partition(":")
    if not name or not colon:
        raise WorkloadError(f"{source} has no path: write NAME:PATH, or NAME: for all outputs of the Job.")
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise WorkloadError(f"{path} is not below the Job's outputs: write the path in that folder.")
    return name, path


def find(api: Api, name: str, namespace: str) -> Object | None:
    """Return the Job of outputs; None if it is deleted.

    Raises:
        ClusterError: it has no outputs, or the cluster is unreachable.
    """
    existing = find_job(api, name, namespace)
    if existing is not None and _folder(existing["spec"]["template"]["spec"]) is None:
        raise ClusterError(
            f"Job {name} in namespace {namespace} has no outputs: create it with a folder for them "
            f"(--outputs {_PATH})."
        )
    return existing


def running_pod(api: Api, job_object: Object) -> Object | None:
    """Return a running pod of a Job that has all of its outputs; None without one, and for a sweep.

    Raises:
        ClusterError: the cluster is unreachable.
    """
    metadata = job_object["metadata"]
    path, label = f"/api/v1/namespaces/{metadata['namespace']}/pods", f"job-name={metadata['name']}"
    if _folder(job_object["spec"]["template"]["spec"]) != outputs_folder(metadata["name"]):
        return None
    with answered():
        pods = api.items(path, labelSelector=f"batch.kubernetes.io/{label}")
    return next((pod for pod in pods if phase_of(pod) == "Running"), None)


def _folder(pod: Object) -> str | None:
    """Return the folder of the outputs of a pod's container; None without outputs."""
    container: Object = pod["containers"][0]
    paths = {entry["value"] for entry in container.get("env") or () if entry["name"] == OUTPUTS}
    for mount in container.get("volumeMounts") or ():
        if mount["mountPath"] in paths:
            return mount.get("subPath") or mount.get("subPathExpr")
    return None


def options_of(job_object: Object) -> dict[str, Any]:
    """Return the options of a run that its reader has too."""
    parameters = parameters_of(job_object)
    return {key: parameters[key] for key, kind in _SAME.items() if isinstance(parameters.get(key), kind)}


def address_of(profile: Profile, name: str, namespace: str, volume: str = "") -> str:
    """Return the address of a Job's outputs in the bucket of its namespace's team; empty if they are not
    there.

    Args:
        volume: claim that was named for it; empty for the team's.
    """
    team = profile.team_of(namespace)
    if team is None or not team.bucket or volume not in ("", team.claim):
        return ""
    in_bucket = not team.claim or team.claim_kind == "bucket"
    return f"{team.bucket}/{outputs_folder(name)}" if in_bucket else ""


def reader(profile: Profile, name: str, user: str, **fields: Any) -> Object:
    """Return a Job whose pod only has the outputs of another Job, for `receive`.

    Args:
        name: name of the Job with the outputs.
        **fields: fields of the reader; see `Task`.

    Raises:
        WorkloadError: it cannot run as described; the message lists all problems.
    """
    command = ("sleep", "604800")  # see `kept`
    own: dict[str, Any] = {
        "name": name_of(f"{name}-cp"),
        "command": command,
        "cpu": "100m",
        "memory": "256Mi",
        "gpus": 0,
        "retries": 3,
        "ttl": "1m",
        "outputs": _PATH,
    }
    manifest = job(profile, **{**fields, **own})
    manifest["spec"]["activeDeadlineSeconds"] = LIFE
    container: Object = manifest["spec"]["template"]["spec"]["containers"][0]
    # The folder of a name without outputs would be created by its mount.
    for mount in container["volumeMounts"]:
        if mount["mountPath"] == _PATH:
            mount |= {"subPath": str(PurePosixPath(outputs_folder(name)).parent), "readOnly": True}
    for entry in container["env"]:
        if entry["name"] == OUTPUTS:
            entry["value"] = f"{_PATH}/{name}"
    return described(manifest, application(name), user, command, {})


@contextmanager
def kept(api: Api, reader: Object) -> Generator[None]:
    """Extend the life of a reader during a block, while it waits for a node as well.

    A command that is killed leaves one that ends after `LIFE` seconds. The time in a queue does not count
    (Kubernetes docs, Jobs, suspending a Job: it resets the start time).

    Args:
        api: the cluster's API, of a user who may patch Jobs; otherwise its life is not extended.
        reader: the created Job.
    """
    metadata = reader["metadata"]
    path, ended = f"{JOB.path.format(metadata['namespace'])}/{metadata['name']}", threading.Event()

    def extend() -> None:
        started, since = "", time.monotonic()
        while not ended.wait(_BEAT):
            past = int(time.monotonic() - since) if started else 0
            try:
                current = api.patch(path, {"spec": {"activeDeadlineSeconds": LIFE + past}})
            except ApiError:
                continue  # the next ones are in time
            if (start := text(current, "status", "startTime")) != started:
                started, since = start, time.monotonic()

    threading.Thread(target=extend, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def receive(
    kubectl: Sequence[str], pod: Object, path: str, directory: Path, *, overwrite: bool = False
) -> Copied:
    """Copy a file, or the files of a folder, from the outputs in a pod into a directory.

    Args:
        kubectl: the command of kubectl, with the pod's namespace.
        pod: the pod, with the variable `EBBTIDE_OUTPUTS`.
        path: path in the outputs; empty for all.
        directory: the directory; a new one gets a `.gitignore`, so that no run sends it as code.
        overwrite: whether files of the directory are replaced.

    Raises:
        WorkloadError: there is no such file, or the directory cannot be written.
        ClusterError: the connection was lost, or the image has neither tar nor Python.
    """
    is_new = not directory.exists()
    words = ["exec", pod["metadata"]["name"], "-c", CONTAINER, "--", "sh", "-c", _SEND, "send", path or "."]
    extracted: Extracted | None = None
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen([*kubectl, *words], stdout=subprocess.PIPE, stderr=errors) as process,  # noqa: S603 - kubectl
    ):
        assert process.stdout is not None  # noqa: S101 - a pipe
        try:
            with suppress(ArchiveError):  # explained by kubectl's error output
                extracted = extract(process.stdout, directory, overwrite=overwrite)
                process.stdout.read(_REST)
                if is_new and extracted.files and not (directory / ".gitignore").exists():
                    (directory / ".gitignore").write_text("*\n", encoding="utf-8")
            process.stdout.close()
            status = process.wait(_LAST)
        except OSError as error:
            process.kill()
            raise WorkloadError(
                f"Nothing more can be written to {directory}: {error.strerror}. What was copied before stays."
            ) from None
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        except BaseException:
            process.kill()
            raise
        errors.seek(0)
        message = errors.read(_MESSAGE)
    if status == _MISSING:
        listed = ", ".join(message.split("\n")[:-2])
        raise WorkloadError(
            f"There is no {path} in the outputs; they have: {listed}."
            if listed
            else "The Job has written no outputs, or none has its name: see `ebbtide jobs --all`."
        )
    if extracted is None or (status and not message.endswith(_CHANGED)):
        raise ClusterError(
            f"The copy from pod {pod['metadata']['name']} is incomplete: {message.strip()} Run it again."
        )
    return Copied(extracted, message.strip() if status else "")
