"""Retries of pipeline steps: settings of Argo's workflow controller."""

import json
from typing import Any, Literal, assert_never

import yaml

from .objects import Object, Patch, is_, updated

CONFIG = "workflow-controller-configmap"

_LOST = (
    "imminent node shutdown|node is shutting down|low on resource|preempt|evict|pod deleted|pod failed:"
    "|Error .exit code 1(37|43)"
)
"""Messages of a step whose pod lost its node.

- The messages of the clouds and Kubernetes, from the controller's own TRANSIENT_ERROR_PATTERN (Kubeflow
  Pipelines 2.17.0). `spot` is excluded, since a user's error may contain it; evictions under pressure are
  added, which have `Evicted` as their reason and not in their message (Kubernetes 1.36,
  pkg/kubelet/eviction).
- `pod failed:`: a failed pod whose containers reported no reason (Argo 4.0.5, inferFailedReason).
- A signal from outside, which Argo's emissary reports as 137: a drained or preempted pod is deleted without
  any other message. KFP's launcher, which receives the signal, exits with 1 if the step's own program
  crashes, and a container over its memory limit reports OOMKilled.
"""

DISRUPTIONS = (
    f"lastRetry.status == 'Error' && lastRetry.message != '' || lastRetry.message matches '(?i){_LOST}'"
)
"""True for an attempt whose pod vanished or reports the loss of its node. A DAG with a permanently failed
step is also an error, but without a message: it is not run again as a whole."""

FAILURES = "asInt(lastRetry.exitCode) > 0"
"""True for an attempt whose container failed."""

_RESTART = {"enabled": True, "maxRestarts": 3}


def retry_strategy(retry: Literal["disruptions", "any"]) -> dict[str, Any]:
    """Return the retry strategy of every template without its own policy, as in all compiled pipelines: a
    step's `set_retry` replaces the limit and adds its backoff.

    Upstream's `OnError` retries neither an exit code nor a graceful node shutdown, so that `set_retry` has no
    effect on either. Observed on a real controller: with it, a preempted step fails after one attempt; with
    `Always` and the expression it runs again, and a step that exits with 1 does not.

    `any` requires an exit code, since DAGs inherit the strategy, too: otherwise, a step that fails
    permanently would cause its whole DAG to run again, twice at every level. Upstream's own strategy does so
    if Argo's executor fails in a step: 27 pods for a step without any retry.

    Sources: Argo 4.0.5, workflow/controller/operator.go (defaults are merged into templates; a retry's exit
    code is -1 if there was no container) and docs, retries; Kubeflow Pipelines 2.17.0,
    argocompiler/container.go; kubeflow/pipelines#13386 and #13485 (2026-06).
    """
    strategy: dict[str, Any] = {"limit": "2", "retryPolicy": "Always"}
    match retry:
        case "disruptions":
            return {**strategy, "expression": DISRUPTIONS}
        case "any":
            return {**strategy, "expression": f"{DISRUPTIONS} || {FAILURES}"}
        case _:
            assert_never(retry)


def spec_patch(retry: Literal["disruptions", "any"]) -> str:
    """Return the strategy as a JSON patch for the spec of every workflow that Kubeflow Pipelines compiles.

    The API server applies it as a strategic merge patch (kubeflow/pipelines 2.15.0,
    argocompiler/spec_patch.go), and a workflow's own spec takes precedence over the controller's defaults
    (Argo Workflows, default-workflow-specs).
    """
    return json.dumps({"templateDefaults": {"retryStrategy": retry_strategy(retry)}})


def retrying(retry: Literal["disruptions", "any"]) -> Patch:
    """Set the retry strategy in the controller's ConfigMap, and restart pods that fail before their first
    container starts (`failedPodRestart`, Argo 4, off by default): an evicted pod, or one that lost its node,
    has no progress to lose, and costs no retry."""

    def patch(manifest: Object) -> Object:
        if not is_(manifest, "ConfigMap", CONFIG):
            return manifest
        defaults: Object = yaml.safe_load(manifest["data"]["workflowDefaults"])
        changed = updated(defaults, ("spec", "templateDefaults", "retryStrategy"), retry_strategy(retry))
        data = {
            **manifest["data"],
            "workflowDefaults": yaml.safe_dump(changed, sort_keys=False, width=1000),
            "failedPodRestart": yaml.safe_dump(_RESTART, sort_keys=False),
        }
        return {**manifest, "data": data}

    return patch
