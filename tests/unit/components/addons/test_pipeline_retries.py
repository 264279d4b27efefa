"""Retries of pipeline steps, of an installed and of an existing Kubeflow Pipelines."""

import json
import re
from typing import Any, Literal

import pytest
import yaml

from components.addons.patches import Object
from components.addons.pipeline_retries import (
    API_SERVER,
    CONFIG,
    CONTAINER,
    DISRUPTIONS,
    VARIABLE,
    ExistingPipelinesError,
    patchable_image,
    patched_spec,
    retry_strategy,
    retrying,
    spec_patch,
)
from ebbtide.analysis.recording.recording import Recording
from tests.contract.flips import EXISTING
from tests.declarations import BASES, Declaration, changed
from tests.manifests import PIPELINES, after, assert_valid, upstream
from tests.running import KUBERNETES, in_cluster, manifest
from tests.synth import synth


def defaults(item: Object) -> Any:
    """Return the defaults of every workflow."""
    return yaml.safe_load(item["data"]["workflowDefaults"])["spec"]


def test_another_configmap_is_left_alone() -> None:
    """Only the controller's is read."""
    item = {"kind": "ConfigMap", "metadata": {"name": "kfp-launcher"}, "data": {"workflowDefaults": ""}}
    assert retrying("any")(item) == item


MESSAGES = [
    ("Pod was terminated in response to imminent node shutdown.", True),
    ("Pod was rejected: node is shutting down", True),
    ("The node was low on resource: memory. Pod was evicted.", True),
    ("Preempted by a pod with a higher priority", True),
    ("pod deleted", True),
    ("Error (exit code 1)", False),
    ("OOMKilled (exit code 137)", False),
    ("no spot instance of the model found (exit code 2)", False),
]


@pytest.mark.parametrize(("message", "is_disruption"), MESSAGES)
def test_what_a_lost_node_says(message: str, is_disruption: bool) -> None:  # noqa: FBT001
    """Pod statuses of a lost node, as the clouds write them, are told apart from failures."""
    pattern = re.search(r"matches '([^']+)'", DISRUPTIONS)
    assert pattern
    assert bool(re.search(pattern[1], message)) is is_disruption


def test_a_failure_is_retried_where_that_was_asked_for() -> None:
    """`any` is what `disruptions` is, or an exit code: a graph of steps has none, and is not run again."""
    assert retry_strategy("disruptions") == {
        "limit": "2",
        "retryPolicy": "Always",
        "expression": DISRUPTIONS,
    }
    assert retry_strategy("any")["expression"] == f"{DISRUPTIONS} || asInt(lastRetry.exitCode) > 0"


@pytest.mark.usefixtures("minimal_and_released")
@pytest.mark.parametrize("retry", ["disruptions", "any"])
def test_upstreams_controller(retry: Literal["disruptions", "any"]) -> None:
    """Upstream's own ConfigMap has the policy that retries neither, and ours in its place afterwards."""
    before = after(upstream(PIPELINES), ())[f"ConfigMap/{CONFIG}"]
    stock = defaults(before)["templateDefaults"]["retryStrategy"]
    assert stock == {"limit": "2", "retryPolicy": "OnError"}
    configured = retrying(retry)(before)
    assert defaults(configured)["templateDefaults"] == {"retryStrategy": retry_strategy(retry)}
    assert defaults(configured)["ttlStrategy"] == defaults(before)["ttlStrategy"]
    assert yaml.safe_load(configured["data"]["failedPodRestart"]) == {"enabled": True, "maxRestarts": 3}
    assert {key for key in configured["data"] if configured["data"][key] != before["data"].get(key)} == {
        "workflowDefaults",
        "failedPodRestart",
    }


IMAGE = "ghcr.io/kubeflow/kfp-api-server:2.17.0"
PATCH = "kubernetes:apps/v1:DeploymentPatch"
READ = "kubernetes:apps/v1:Deployment"


def spec(*variables: dict[str, str], name: str = CONTAINER) -> dict[str, Any]:
    """A Deployment's spec."""
    container = {"name": name, "image": IMAGE, "env": list(variables)}
    return {"template": {"spec": {"containers": [container]}}}


def declared(cloud: str, **more: Any) -> Declaration:
    """Pools for an existing cluster with Kubeflow Pipelines."""
    return changed(EXISTING[cloud], addons={"pipelines": {"existing": True, **more}})


def patch_of(recording: Recording) -> dict[str, Any]:
    """The one patch."""
    (resource,) = recording.of_type(PATCH)
    return manifest(resource)


@pytest.mark.parametrize("cloud", BASES)
@pytest.mark.parametrize("retry", ["disruptions", "any"])
def test_one_variable_of_one_container_is_patched(cloud: str, retry: Literal["disruptions", "any"]) -> None:
    """Nothing else is created on the cluster, and everything but our variable stays its owner's."""
    recording = synth(declared(cloud, retry=retry))
    made = [(item.type, item.read) for item in recording if item.type in (READ, PATCH)]
    assert made == [(READ, True), (PATCH, False)]
    assert [item.type for item in in_cluster(recording)] == [PATCH]
    patch = patch_of(recording)
    assert patch["metadata"]["name"] == API_SERVER
    assert patch["metadata"]["namespace"] == "kubeflow"
    assert patch["metadata"]["annotations"]["pulumi.com/patchForce"] == "true"
    assert json.loads(spec_patch(retry)) == {"templateDefaults": {"retryStrategy": retry_strategy(retry)}}


def test_the_patch_has_the_positions_of_what_it_patches() -> None:
    """Containers and variables before the patched one are named without a change, because the provider
    compares lists by position."""
    variables = [{"name": "LOG_LEVEL", "value": "info"}, {"name": VARIABLE, "value": "{}"}]
    existing = spec(*variables, {"name": "OTHER", "value": "1"})
    existing["template"]["spec"]["containers"].insert(0, {"name": "sidecar", "image": "busybox"})
    env = [{"name": "LOG_LEVEL"}, {"name": VARIABLE, "value": "ours"}]
    assert patched_spec(existing, "ours") == {
        "template": {"spec": {"containers": [{"name": "sidecar"}, {"name": CONTAINER, "env": env}]}}
    }


@pytest.mark.parametrize("cloud", BASES)
def test_the_preview_shows_the_strategy(cloud: str) -> None:
    """The component has the retry strategy as for a new installation, and warns about upgrades."""
    recording = synth(declared(cloud))
    (component,) = recording.of_type("ebbtide:addons:ExistingPipelines")
    assert component.inputs == {"retryStrategy": retry_strategy("disruptions")}
    assert [item for item in recording.messages if "resets the retry strategy" in item.text]


@pytest.mark.parametrize("cloud", BASES)
def test_a_queue_leads_to_the_steps(cloud: str) -> None:
    """With Kueue, the namespace of the existing installation gets its local queues; it is never removed."""
    recording = synth(declared(cloud) | {"queues": [{"name": "cpu", "pools": ["work"]}]})
    queues = [manifest(item) for item in in_cluster(recording) if manifest(item).get("kind") == "LocalQueue"]
    assert [item["metadata"]["namespace"] for item in queues] == ["kubeflow"]
    spaces = [item for item in recording.of_type("kubernetes:core/v1:Namespace") if item.custom]
    assert "kubeflow" not in [manifest(item)["metadata"]["name"] for item in spaces]


@pytest.mark.parametrize("value", [None, "", "{}", spec_patch("any")])
def test_what_is_replaced(value: str | None) -> None:
    """Upstream's empty value, that which is left after a destroy, and a strategy of ours."""
    variable = {"name": VARIABLE} | ({"value": value} if value is not None else {})
    assert patchable_image(spec({"name": "OTHER", "value": "x"}, variable)) == IMAGE


@pytest.mark.parametrize(
    "value",
    [
        '{"serviceAccountName": "theirs"}',
        '{"templateDefaults": {"retryStrategy": {}, "timeout": "1h"}}',
        '{"templateDefaults": {"retryStrategy": {}}, "ttlStrategy": {}}',
        "[]",
        "not JSON",
    ],
)
def test_what_is_the_owners(value: str) -> None:
    """A value of the owner's is not overwritten: no destroy could bring it back."""
    with pytest.raises(ExistingPipelinesError, match="The owner of the deployment ml-pipeline"):
        patchable_image(spec({"name": VARIABLE, "value": value}))


@pytest.mark.parametrize("deployment", [spec(), spec({"name": VARIABLE, "value": "{}"}, name="other")])
def test_an_installation_before_2_15(deployment: dict[str, Any]) -> None:
    """One that does not read the variable is refused: the patch would do nothing."""
    with pytest.raises(ExistingPipelinesError, match=r"from 2\.15\.0 on"):
        patchable_image(deployment)


@pytest.mark.usefixtures("minimal_and_released")
def test_upstreams_deployment_takes_it() -> None:
    """The released Deployment has the container and the empty variable, and is valid with ours."""
    deployment = after(upstream(PIPELINES), ())[f"Deployment/{API_SERVER}"]
    assert patchable_image(deployment["spec"]) == IMAGE
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (variable,) = [item for item in container["env"] if item["name"] == VARIABLE]
    assert variable == {"name": VARIABLE, "value": "{}"}
    ours = [item if item != variable else {**item, "value": spec_patch("any")} for item in container["env"]]
    pods = {"containers": [{**container, "env": ours}]}
    template = {**deployment["spec"]["template"], "spec": pods}
    assert_valid({**deployment, "spec": {**deployment["spec"], "template": template}}, KUBERNETES)
