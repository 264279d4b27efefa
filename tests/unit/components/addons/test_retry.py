"""The retry settings of the workflow controller."""

import re
from typing import Any, Literal

import pytest
import yaml

from components.addons.patches import Object
from components.addons.pipeline_retries import CONFIG, DISRUPTIONS, retry_strategy, retrying
from tests.manifests import PIPELINES, after, upstream

STOCK = """\
spec:
  ttlStrategy: {secondsAfterCompletion: 3600}
  templateDefaults:
    retryStrategy: {limit: '2', retryPolicy: OnError}
"""


def config(**data: str) -> Object:
    """A controller's ConfigMap."""
    return {"kind": "ConfigMap", "metadata": {"name": CONFIG}, "data": {"workflowDefaults": STOCK, **data}}


def defaults(item: Object) -> Any:
    """Return the defaults of every workflow."""
    return yaml.safe_load(item["data"]["workflowDefaults"])["spec"]


@pytest.mark.parametrize("retry", ["disruptions", "any"])
def test_only_the_strategy_changes(retry: Literal["disruptions", "any"]) -> None:
    """The policy is ours, and whatever else workflows inherit, and the controller is told, stays."""
    configured = retrying(retry)(config(executor="imagePullPolicy: IfNotPresent"))
    assert defaults(configured)["templateDefaults"]["retryStrategy"] == retry_strategy(retry)
    assert defaults(configured)["ttlStrategy"] == {"secondsAfterCompletion": 3600}
    assert configured["data"]["executor"] == "imagePullPolicy: IfNotPresent"
    assert yaml.safe_load(configured["data"]["failedPodRestart"]) == {"enabled": True, "maxRestarts": 3}


def test_another_configmap_is_left_alone() -> None:
    """Only the controller's is read."""
    item = {**config(), "metadata": {"name": "kfp-launcher"}}
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
    assert {key for key in configured["data"] if configured["data"][key] != before["data"].get(key)} == {
        "workflowDefaults",
        "failedPodRestart",
    }
