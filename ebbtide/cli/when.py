"""When work starts: the option --when. Dependencies are imported on execution."""

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from ebbtide.cli.consoles import console, say, write
from ebbtide.cli.error_output import require
from ebbtide.cli.options import PreviewFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ebbtide.clients.kubernetes import Api
    from ebbtide.operations.traces.existing import ExistingWork
    from ebbtide.operations.traces.when import Estimate, Present
    from ebbtide.placement import Profile


def show_when(manifest: dict[str, Any], profile: "Profile", context: str, format_: PreviewFormat) -> None:
    """Tell when a Job would start, which is not created."""
    from ebbtide.clients.kubernetes import Api  # noqa: PLC0415
    from ebbtide.operations.traces.existing import planned  # noqa: PLC0415
    from ebbtide.operations.traces.when import VERSION  # noqa: PLC0415

    api = Api.of_user(context)
    namespace = manifest["metadata"].get("namespace") or api.namespace
    present, (start,) = _estimates(
        api, namespace, profile, lambda present: [planned(manifest, namespace, profile, present.now)]
    )
    if format_ is PreviewFormat.JSON:
        document = {
            "version": VERSION,
            "namespace": start.namespace,
            "name": start.name,
            "queue": start.queue,
            **start.document(),
            "notes": present.notes,
        }
        write(json.dumps(document, indent=2) + "\n", None)
        return
    place = f": position {start.position} in queue {start.queue}" if start.queue else ""
    sentences = [
        f"Job {start.name} would start {start.time}{place}." if start.time else start.problem,
        start.basis,
    ]
    say(" ".join(filter(None, (*sentences, *present.notes))))


def starts_of(api: "Api", namespace: str, profile: "Profile | None") -> "dict[tuple[str, str], Estimate]":
    """Return when the waiting work of a namespace starts, by namespace and name; empty for all namespaces.

    Raises:
        ProfileError: the namespace has no profile.
    """
    from ebbtide.placement import ProfileError  # noqa: PLC0415

    if profile is None:
        raise ProfileError(
            "--when needs the cluster's profile, for the capacity of nodes. Name one with --profile."
        )

    def waiting(present: "Present") -> "list[ExistingWork]":
        works = (job.work for job in present.jobs if job.work.started is None)
        return [work for work in works if namespace in ("", work.namespace)]

    _, starts = _estimates(api, namespace, profile, waiting)
    return {(start.namespace, start.name): start for start in starts}


def _estimates(
    api: "Api", namespace: str, profile: "Profile", targets: "Callable[[Present], list[ExistingWork]]"
) -> "tuple[Present, Sequence[Estimate]]":
    """Read the state of the queues, and replay it."""
    require("replay")
    from ebbtide.operations.traces.when import estimate, read_present  # noqa: PLC0415
    from kueue_replay import Replay, program  # noqa: PLC0415

    progress = console(sys.stderr)
    kueue = program(progress)
    present = read_present(api, namespace, profile, time.time())
    with progress.status("Replaying the queues"):
        return present, estimate(
            profile, present, targets(present), lambda request: Replay(request).run(kueue).job_documents()
        )
