"""The `why` command. Its dependencies are imported on execution."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.config import namespace_of
from ebbtide.cli.consoles import say, write
from ebbtide.cli.follow import Context, Format, available_profile
from ebbtide.cli.jobs import Namespace, Profile
from ebbtide.cli.options import PreviewFormat

if TYPE_CHECKING:
    from ebbtide.work.evidence import Evidence


def why(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a Job, a TrainJob, an experiment, a pipeline run, a pod or a Kueue Workload.",
        ),
    ],
    *,
    namespace: Namespace = "",
    context: Context = "",
    format_: Format = PreviewFormat.TEXT,
    profile: Profile = "",
) -> None:
    """Say why a workload is waiting, and who can change it.

    One sentence from Kueue's objects, the pods and their events. What the user may not read, such as
    workloads of other teams, is not in it.
    """
    from ebbtide.clients.kubernetes import Api  # noqa: PLC0415
    from ebbtide.values import clock  # noqa: PLC0415
    from ebbtide.work.evidence import VERSION, read_evidence  # noqa: PLC0415
    from ebbtide.work.progress import cause_of  # noqa: PLC0415

    api = Api.of_user(context)
    place = namespace_of(api, namespace)
    cluster = available_profile(profile, place, context)  # most causes are known without it
    evidence = read_evidence(api, name, place, clock.now(), cluster)
    cause = cause_of(evidence)
    if format_ is PreviewFormat.JSON:
        document = {
            "version": VERSION,
            "kind": evidence.kind,
            "namespace": evidence.namespace,
            "name": evidence.name,
            "cause": cause.document() if cause else None,
        }
        write(json.dumps(document, indent=2) + "\n", None)
        return
    subject = f"{evidence.kind[0].upper()}{evidence.kind[1:]} {evidence.name}"
    say(f"{subject} waits: {cause}" if cause else f"{subject} does not wait{_phase(evidence)}.")


def _phase(evidence: "Evidence") -> str:
    """Return the clause about the phase of a workload that does not wait; empty if it has none."""
    from ebbtide.clients.kubernetes.objects import phase_of  # noqa: PLC0415
    from ebbtide.work.progress import progress  # noqa: PLC0415

    if evidence.job:
        return f": it is {progress(evidence).phase}"
    return f": it is {phase_of(evidence.pods[0]).lower()}" if evidence.pods else ""
