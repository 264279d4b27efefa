"""Kinds of workloads: Jobs, TrainJobs, Katib experiments, and pipeline runs, which are Argo Workflows.

Each is converted to the form of a Job, so that progress and end are derived by the same code.
"""

import http
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import Object, items_of
from ebbtide.text import and_list, did_you_mean, or_list
from ebbtide.values.given_command import given_command
from ebbtide.work.errors import ClusterError, answered, explained

_RUN: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Ids of Kubeflow Pipelines runs."""
RUN_LABEL: Final = "pipeline/runid"
"""Label on a run's Workflow and pods (kubeflow/pipelines, backend/src/common/util/consts.go, 2.17)."""
INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Annotation and label with the index of a pod of an Indexed Job."""
TRIAL_LABEL: Final = "katib.kubeflow.org/trial"
_EXPERIMENT_LABEL: Final = "katib.kubeflow.org/experiment"
"""Labels on a trial's pods; the second is also on those of the suggestion service (kubeflow/katib 0.19,
pkg/webhook/v1beta1/pod/utils.go, pkg/controller.v1beta1/util/labels.go)."""


class NoWorkloadError(ClusterError):
    """No workload has the name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of workload.

    Attributes:
        name: name for users, such as `TrainJob`.
        path: API path of its objects, with a placeholder for the namespace.
        pod_selector: function that returns the label selector of its pods; it begins with a label,
            `key=value`.
        as_job: function that converts an object to the form of a Job.
    """

    name: str
    path: str
    pod_selector: Callable[[Object], str]
    as_job: Callable[[Object], Object]


def unchanged(item: Object) -> Object:
    """Return an object that has the form of a Job."""
    return item


def _run(workflow: Object) -> Object:
    """Convert a Workflow to the form of a Job: its pods are completions, its failed pods are attempts.

    Source: Argo Workflows 4.0, pkg/apis/workflow/v1alpha1/workflow_types.go, `WorkflowStatus`.
    """
    status: Object = workflow.get("status") or {}
    every: dict[str, Object] = status.get("nodes") or {}
    nodes = [node for node in every.values() if node.get("type") == "Pod"]
    phases = [node.get("phase") for node in nodes]
    conditions: list[Object] = []
    end = {"status": "True", "lastTransitionTime": status.get("finishedAt")}
    match status.get("phase"):
        case "Succeeded":
            conditions.append({"type": "Complete", **end})
        case "Failed" | "Error":
            conditions.append({"type": "Failed", "message": status.get("message") or "", **end})
        case _:
            pass
    return {
        "kind": "Pipeline run",
        "metadata": workflow["metadata"],
        "spec": {"completions": len(nodes) or 1, "suspend": bool(workflow["spec"].get("suspend"))},
        "status": {
            "succeeded": phases.count("Succeeded"),
            "failed": phases.count("Failed") + phases.count("Error"),
            "conditions": conditions,
        },
    }


def _experiment(item: Object) -> Object:
    """Convert an Experiment to the form of a Job: its trials are completions.

    Source: Katib 0.19, pkg/apis/controller/experiments/v1beta1/experiment_types.go, `ExperimentStatus`.
    """
    status: Object = item.get("status") or {}
    ends = {"Succeeded": "Complete", "Failed": "Failed"}
    every: list[Object] = status.get("conditions") or []
    conditions = [{**entry, "type": ends[entry["type"]]} for entry in every if entry["type"] in ends]
    return {
        "kind": "Experiment",
        "metadata": item["metadata"],
        "spec": {"completions": item["spec"].get("maxTrialCount") or 1},
        "status": {
            "succeeded": (status.get("trialsSucceeded") or 0) + (status.get("trialsEarlyStopped") or 0),
            "failed": status.get("trialsFailed") or 0,
            "conditions": conditions,
        },
    }


def trials(experiment: Object) -> list[str]:
    """Return the names of an Experiment's trials."""
    status: Object = experiment.get("status") or {}
    return [name for key, names in status.items() if key.endswith("TrialList") for name in names or ()]


JOB: Final = Kind(
    "Job",
    "/apis/batch/v1/namespaces/{}/jobs",
    lambda job: f"batch.kubernetes.io/controller-uid={job['metadata']['uid']}",
    unchanged,
)
TRAIN_JOB: Final = Kind(
    "TrainJob",
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs",
    # The JobSet of a TrainJob has the same name (kubeflow/trainer 2.3, pkg/runtime/framework/plugins/jobset).
    lambda job: f"jobset.sigs.k8s.io/jobset-name={job['metadata']['name']}",
    unchanged,
)
PIPELINE_RUN: Final = Kind(
    "pipeline run",
    "/apis/argoproj.io/v1alpha1/namespaces/{}/workflows",
    lambda workflow: f"workflows.argoproj.io/workflow={workflow['metadata']['name']}",
    _run,
)
EXPERIMENT: Final = Kind(
    "experiment",
    "/apis/kubeflow.org/v1beta1/namespaces/{}/experiments",
    lambda experiment: f"{_EXPERIMENT_LABEL}={experiment['metadata']['name']},{TRIAL_LABEL}",
    _experiment,
)
WORKLOADS: Final = (JOB, TRAIN_JOB, PIPELINE_RUN, EXPERIMENT)
"""Kinds of workloads that users create."""


def kind_of(api: Api, name: str, namespace: str, kinds: Sequence[Kind] = WORKLOADS) -> tuple[Kind, str]:
    """Return the kind of the workload with a name, and the name of its object.

    Args:
        name: name of its object, or the id of a pipeline run.
        kinds: the kinds to look among.

    Raises:
        NoWorkloadError: there is none.
        ClusterError: reading Jobs is forbidden, or the API server does not respond.
    """
    with answered(lambda error: lost(error, JOB, name, namespace, known=False)):
        if _RUN.fullmatch(name):
            path = PIPELINE_RUN.path.format(namespace)
            runs = items_of(api.find(path, labelSelector=f"{RUN_LABEL}={name}"))
            if runs:
                return PIPELINE_RUN, runs[0]["metadata"]["name"]
        for kind in kinds:
            if _find(api, kind, f"{kind.path.format(namespace)}/{name}") is not None:
                return kind, name
        listed = [_find(api, kind, kind.path.format(namespace)) for kind in kinds]
        elsewhere = _elsewhere(api, kinds, name)
    names = [item["metadata"]["name"] for found in listed for item in items_of(found)]
    logs = given_command().on_job("logs", "", namespace, "--job", name)
    raise NoWorkloadError(
        f"There is no {or_list(kind.name for kind in kinds)} {name} in namespace {namespace}"
        f"{did_you_mean(name, names)}{elsewhere} It may have ended and been deleted after its time to live; "
        f"the logs of a Job: `{logs}`."
    )


def find_job(api: Api, name: str, namespace: str) -> Object | None:
    """Return the Job of a name; None if there is none.

    Raises:
        ClusterError: reading it is forbidden, or the API server does not respond.
    """
    with answered():
        return api.find(f"{JOB.path.format(namespace)}/{name}")


def _elsewhere(api: Api, kinds: Sequence[Kind], name: str) -> str:
    """Return where else a workload of that name is; empty if nowhere that the caller may list."""
    named = f"metadata.name={name}"
    found = [
        item["metadata"]["namespace"]
        for kind in kinds
        for item in items_of(_find(api, kind, kind.path.replace("/namespaces/{}", ""), fieldSelector=named))
    ]
    return f" There is one in {and_list(sorted(set(found)))}: add `--namespace`." if found else ""


def _find(api: Api, kind: Kind, path: str, **query: str) -> Object | None:
    """Return an object or a list; None if it does not exist, or the caller may not read it. Only Jobs of a
    namespace must be readable."""
    try:
        return api.find(path, **query)
    except ApiError as error:
        if error.forbidden and (kind is not JOB or query):
            return None
        raise


def lost(error: ApiError, kind: Kind, name: str, namespace: str, *, known: bool) -> str:
    """Return the message for a workload that cannot be read.

    Args:
        error: the API server's error.
        known: true if it was read before.
    """
    match error.status:
        case http.HTTPStatus.NOT_FOUND if known:
            return f"The {kind.name} {name} was deleted before its end was observed."
        case http.HTTPStatus.NOT_FOUND:
            return f"There is no {kind.name} {name} in namespace {namespace}: it was deleted."
        case http.HTTPStatus.FORBIDDEN:
            return (
                f"You may not follow {kind.name}s in namespace {namespace}: ask its team for membership. "
                f"({error.message})"
            )
        case _:
            return explained(error)
