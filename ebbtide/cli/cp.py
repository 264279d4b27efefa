"""The `cp` command. Dependencies are imported on execution."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ebbtide.cli.config import kubectl_command, namespace_of
from ebbtide.cli.consoles import ExitStatus, console, say
from ebbtide.cli.job import fields_of, with_defaults, with_shared_options
from ebbtide.clients.kubernetes import Api
from ebbtide.operations.engine.interrupts import ending_signals
from ebbtide.text import several
from ebbtide.work.errors import WorkloadError

if TYPE_CHECKING:
    from ebbtide.clients.kubernetes.objects import Object

_NOT_READ: Final = (
    "gpus",
    "cpu",
    "memory",
    "shared_memory",
    "priority",
    "retries",
    "fail_on",
    "ttl",
    "max_run",
    "env",
    "secret_env",
    "secret_volumes",
    "mount_path",
    "keep_node",
    "outputs",
    "mounts",
    "submit",
    "when",
    "format_",
)
"""Shared options of Jobs that a pod that only reads does not have."""


@partial(with_shared_options, without=_NOT_READ)
def cp(
    source: Annotated[str, typer.Argument(metavar="NAME:PATH", help="A Job, and a path in its outputs.")],
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="The target.")] = Path(),
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    **options: Any,
) -> None:
    """Copy outputs of a Job to this machine, also after its deletion.

    A file is copied into DIR, and of a folder its files; `NAME:` is all of the outputs. They are read in the
    Job's running pod. Without one, a Job on the pool or in the queue reads them, and is deleted again; if the
    Job still exists, it has the same pool or queue, and image. Only files and directories are copied: no
    links, nothing into `.git`, and nothing over an existing file without --force. A new DIR gets a
    `.gitignore`, so that `run` does not send it as code. Exit status 1: something was not copied; its name
    is printed.
    """
    from ebbtide.work.runs import outputs
    from ebbtide.work.runs.folder import size_text

    name, path = outputs.parse(source)
    if directory.exists() and not directory.is_dir():
        raise WorkloadError(f"{directory} is not a directory: write the target's directory.")
    api = Api.of_user(options["context"])
    namespace = namespace_of(api, options["namespace"])
    kubectl = kubectl_command(namespace, options["context"])
    existing = outputs.find(api, name, namespace)
    pod = outputs.running_pod(api, existing) if existing else None
    if pod is not None:
        copied = outputs.receive(kubectl, pod, path, directory, overwrite=force)
    else:
        if existing and not (options["pool"] or options["queue"]):
            options |= {key: value for key, value in outputs.options_of(existing).items() if not options[key]}
        with _reading(api, name, {**options, "namespace": namespace}) as pod:
            copied = outputs.receive(kubectl, pod, path, directory, overwrite=force)
    if copied.warning:
        say(f"Files changed while they were read, and may be incomplete: {copied.warning}", err=True)
    extracted = copied.extracted
    for name in extracted.skipped:
        say(f"Not copied: {name}.", err=True)
    if unnamed := extracted.skipped_count - len(extracted.skipped):
        say(f"Not copied: {unnamed} more.", err=True)
    say(f"{several(extracted.files, 'file')}, {size_text(extracted.size)}, copied to {directory}.")
    if extracted.skipped:
        raise typer.Exit(ExitStatus.FOUND)


@contextmanager
def _reading(api: Api, name: str, options: dict[str, Any]) -> "Generator[Object]":
    """Yield the pod of a Job that reads the outputs, and delete it."""
    from ebbtide.work import submission
    from ebbtide.work.runs import outputs, sessions
    from ebbtide.work.runs.run import user_of

    cluster = with_defaults(options)
    if not (options["pool"] or options["queue"]):
        raise WorkloadError(
            f"No pod of {name} runs in namespace {options['namespace']}, and a Job has to read its outputs: "
            "name a pool (--pool) or a queue (--queue) for it."
        )
    with fields_of(name, None, options) as fields:
        others = {key: value for key, value in fields.items() if key != "name"}
        manifest = outputs.reader(cluster, name, user_of(api), **others)
    with ending_signals():
        reader = submission.submit(api, manifest)
        try:
            address = outputs.address_of(cluster, name, options["namespace"], options["volume"])
            also = f", which are also at {address}" if address else ""
            say(f"No pod of {name} runs: Job {reader['metadata']['name']} reads its outputs{also}.", err=True)
            with outputs.kept(api, reader):
                yield _wait(api, reader)
        finally:
            sessions.delete(api, reader)


def _wait(api: Api, reader: "Object") -> "Object":
    """Wait until a reader runs, with the reasons of the wait; return its pod."""
    from ebbtide.cli.follow_progress import narration
    from ebbtide.work import progress
    from ebbtide.work.runs.sessions import wait_until_running

    metadata = reader["metadata"]
    with narration(console(sys.stderr)) as show:
        return wait_until_running(
            api,
            metadata["name"],
            metadata["namespace"],
            lambda state: show(progress.progress_line(state)),
            show,
        )
