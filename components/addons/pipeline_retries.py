"""Retries of pipeline steps: settings of Argo's workflow controller, and those of an existing Kubeflow
Pipelines."""

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal, assert_never

import pulumi
import yaml

from ebbtide.declaration.model.addons import Pipelines as Declared
from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE as NAMESPACE
from ebbtide.declaration.providers.constraints import PATCH_FORCE

from .manifest import Manifest, obj
from .patches import Object, Patch, is_, updated

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

API_SERVER = "ml-pipeline"
"""Name of the API server's Deployment."""
CONTAINER = "ml-pipeline-api-server"
VARIABLE = "COMPILED_PIPELINE_SPEC_PATCH"
"""A patch for the spec of every compiled workflow, since 2.15.0 (kubeflow/pipelines#12317, 2025-10).
Upstream's Deployment sets it to `{}`, which the API server treats like an empty value (2.17.0,
argocompiler/spec_patch.go)."""
PATCHED_IMAGE = "ebbtide.dev/patched-image"
"""Annotation with the image that was patched. A new image changes the patch, so that the next `pulumi up`
applies it again after an upgrade with kubectl has reset the variable."""


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


class ExistingPipelinesError(pulumi.RunError):
    """The existing installation cannot be patched."""


def patchable_image(spec: Mapping[str, Any]) -> str:
    """Check that the patch overwrites no value of the owner, and return the API server's image.

    Args:
        spec: the Deployment's, as the API server returns it.

    Raises:
        ExistingPipelinesError: the version does not support the variable, or the owner has set it.
    """
    containers: Sequence[Mapping[str, Any]] = spec["template"]["spec"]["containers"]
    container = next((item for item in containers if item["name"] == CONTAINER), None)
    variables: Sequence[Mapping[str, Any]] = (container or {}).get("env") or ()
    variable = next((item for item in variables if item["name"] == VARIABLE), None)
    if container is None or variable is None:
        raise ExistingPipelinesError(
            f"The deployment {API_SERVER} in namespace {NAMESPACE} does not set {VARIABLE}: Kubeflow "
            "Pipelines reads it from 2.15.0 on. Retries of pipelines would not survive preemption. Upgrade "
            "Kubeflow Pipelines, or remove addons.pipelines from the declaration."
        )
    value = str(variable.get("value") or "{}")
    if not _replaceable(value):
        raise ExistingPipelinesError(
            f"The owner of the deployment {API_SERVER} in namespace {NAMESPACE} has set {VARIABLE} to "
            f"{value}. Ebbtide would overwrite it, and a destroy would remove it. Have the owner add the "
            "retry strategy to it as docs/kubeflow-pipelines.md describes, and remove addons.pipelines from "
            "the declaration."
        )
    return str(container["image"])


def _replaceable(value: str) -> bool:
    """Return whether a value is empty, or sets only a retry strategy, as Ebbtide's does."""
    try:
        patch = json.loads(value)
    except ValueError:
        return False
    match patch:
        case {"templateDefaults": {"retryStrategy": _, **defaults}, **rest}:
            return not defaults and not rest  # pyright: ignore[reportUnknownVariableType] - JSON
        case _:
            return patch == {}


def patched_spec(spec: Mapping[str, Any], value: str) -> dict[str, Any]:
    """Return the Deployment's patched spec: the variable, at its own and its container's list positions.

    The preceding items have only their names, which changes none of their fields: the provider compares lists
    by position, and would otherwise update the Deployment on every `pulumi up` (pulumi-kubernetes 4.25,
    provider/pkg/provider/util.go, pruneSlice).
    """
    containers: Sequence[Mapping[str, Any]] = spec["template"]["spec"]["containers"]
    variables = next((item.get("env") or () for item in containers if item["name"] == CONTAINER), ())
    env = _positioned(variables, {"name": VARIABLE, "value": value})
    return {"template": {"spec": {"containers": _positioned(containers, {"name": CONTAINER, "env": env})}}}


def _positioned(items: Sequence[Mapping[str, Any]], own: Mapping[str, Any]) -> list[dict[str, Any]]:
    before = takewhile(lambda item: item["name"] != own["name"], items)
    return [*({"name": item["name"]} for item in before), dict(own)]


class _Deployment(pulumi.CustomResource):
    """The API server's Deployment, read and not managed."""

    spec: pulumi.Output[Mapping[str, Any]]

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        identity = pulumi.ResourceOptions(id=f"{NAMESPACE}/{API_SERVER}")
        opts = pulumi.ResourceOptions.merge(opts, identity)
        super().__init__("kubernetes:apps/v1:Deployment", name, {"spec": None}, opts)


class ExistingPipelines(pulumi.ComponentResource):
    """The retry strategy of an existing Kubeflow Pipelines, set in its API server's environment.

    Why not in the workflow controller's ConfigMap, as for an installed Kubeflow Pipelines: its
    `workflowDefaults` is a single string that also contains upstream's other defaults. A patch takes
    ownership of the whole string, and on destroy removes it. The variable is a separate item, whose removal
    restores upstream's default, and it also works in 2.15 and 2.16, whose ConfigMap has no such key.
    `failedPodRestart` is not set: their controller, Argo 3.7, rejects a ConfigMap with an unknown key
    (config/controller.go, UnmarshalStrict). A pod that is lost before its first container starts therefore
    costs one of the step's retries.

    The API server restarts, one replica after the other; running workflows keep the strategy that they were
    compiled with. Source: kubeflow/pipelines 2.15.0 to 2.17.0, manifests/kustomize (2025-11 to 2026-07).
    """

    def __init__(self, name: str, declared: Declared, opts: pulumi.ResourceOptions | None = None) -> None:
        retry = declared.retry
        super().__init__(
            "ebbtide:addons:ExistingPipelines", name, {"retryStrategy": retry_strategy(retry)}, opts
        )
        inside = pulumi.ResourceOptions(parent=self)
        deployed = _Deployment(f"{name}-{API_SERVER}", inside).spec
        image = deployed.apply(patchable_image)
        # kubectl owns what it has applied: without force, the patch would be rejected as a conflict.
        annotations = {PATCH_FORCE: "true", PATCHED_IMAGE: image}
        Manifest(
            f"{name}-retries",
            obj(
                "apps/v1",
                "Deployment",
                API_SERVER,
                NAMESPACE,
                metadata={"annotations": annotations},
                spec=deployed.apply(lambda spec: patched_spec(spec, spec_patch(retry))),
            ),
            inside,
            patch=True,
        )
        self.register_outputs({})
