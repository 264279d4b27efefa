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

- The clouds' and Kubernetes' words, as in the controller's own TRANSIENT_ERROR_PATTERN (Kubeflow Pipelines
  2.17.0), but for `spot`, which a user's own error may hold, and with those of an eviction under pressure,
  which has `Evicted` as its reason and not in its message (Kubernetes 1.36, pkg/kubelet/eviction).
- `pod failed:`, of a pod that failed and whose containers never said how (Argo 4.0.5, inferFailedReason).
- A signal from outside, of which Argo's emissary makes 137: a drained or preempted pod is deleted, and says
  no more than that. KFP's launcher, which is what is signalled, ends with 1 where the step's own program
  crashes, and a container over its memory limit says OOMKilled.
"""

DISRUPTIONS = (
    f"lastRetry.status == 'Error' && lastRetry.message != '' || lastRetry.message matches '(?i){_LOST}'"
)
"""True of an attempt whose pod vanished, or says that its node was taken away. A graph of steps whose step
was lost for good is an error, too, but without a message: it is not run again as a whole."""

FAILURES = "asInt(lastRetry.exitCode) > 0"
"""True of an attempt whose container failed."""

_RESTART = {"enabled": True, "maxRestarts": 3}


def retry_strategy(retry: Literal["disruptions", "any"]) -> dict[str, Any]:
    """Return the retry strategy of every template without a policy of its own, as all of compiled pipelines:
    a step's `set_retry` replaces the limit and adds its backoff.

    Upstream's `OnError` retries neither an exit code nor a node that was shut down in order, so that
    `set_retry` does nothing for either. Run on a real controller: with it a preempted step fails after one
    attempt; with `Always` and the expression it runs again, and one that exits 1 does not.

    `any` asks for an exit code, since graphs of steps inherit the strategy, too: without that, a step that
    fails for good would have its whole graph run again, twice at every level. Upstream's own does so where
    Argo's executor fails beside a step: 27 pods for a step without any retry.

    Sources: Argo 4.0.5, workflow/controller/operator.go (defaults are merged into templates; a retry's exit
    code is -1 where there was no container) and docs, retries; Kubeflow Pipelines 2.17.0,
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
    """Return the same strategy for the spec of every workflow that Kubeflow Pipelines compiles, as JSON.

    The API server applies it as a strategic merge patch (kubeflow/pipelines 2.15.0,
    argocompiler/spec_patch.go), and a workflow's own spec wins over the controller's defaults (Argo
    Workflows, default-workflow-specs).
    """
    return json.dumps({"templateDefaults": {"retryStrategy": retry_strategy(retry)}})


def retrying(retry: Literal["disruptions", "any"]) -> Patch:
    """Set the retry strategy in the controller's ConfigMap, and restart pods that fail before their first
    container ran (`failedPodRestart`, Argo 4, off by default): an evicted pod, or one that lost its node, has
    done nothing yet, and costs no retry."""

    def patch(manifest: Object) -> Object:
        if not is_(manifest, "ConfigMap", CONFIG):
            return manifest
        defaults: Object = yaml.safe_load(manifest["data"]["workflowDefaults"])
        wanted = updated(defaults, ("spec", "templateDefaults", "retryStrategy"), retry_strategy(retry))
        data = {
            **manifest["data"],
            "workflowDefaults": yaml.safe_dump(wanted, sort_keys=False, width=1000),
            "failedPodRestart": yaml.safe_dump(_RESTART, sort_keys=False),
        }
        return {**manifest, "data": data}

    return patch
