"""Settings of the fake cloud's autoscaler from a cluster's autoscaler profile."""

from pathlib import Path
from typing import Any

from ebbtide_rehearsal.cloud.pools import Autoscaling, settings_of
from rehearsal.tests.unit.azure_cloud import CLUSTER, MANAGED_CLUSTER, Azure

PROFILE: dict[str, Any] = {
    "expander": "priority",
    "scaleDownUnneededTime": "3m",
    "scaleDownDelayAfterAdd": "0m",
    "scaleDownUtilizationThreshold": "0.7",
    "ignoreDaemonsetsUtilization": True,
    "maxGracefulTerminationSec": "30",
    "skipNodesWithLocalStorage": "true",
    "skipNodesWithSystemPods": "false",
}


def test_the_autoscaler_is_told_what_the_profile_says(tmp_path: Path) -> None:
    """Every setting of the profile reaches it."""
    azure = Azure(tmp_path).with_network()
    made = azure.make_cluster(autoScalerProfile=PROFILE)
    assert settings_of(azure.store, made.id) == Autoscaling(
        expander="priority",
        idle_seconds=180,
        delay_after_add_seconds=0,
        utilization=0.7,
        daemons_count=False,
        eviction_seconds=30,
        skip_local_storage=True,
        skip_system_pods=False,
    )


def test_without_a_profile_it_has_its_defaults(tmp_path: Path) -> None:
    """A choice by chance among them, and one setting alone changes no other."""
    azure = Azure(tmp_path).with_network()
    made = azure.make_cluster()
    assert settings_of(azure.store, made.id) == Autoscaling()
    inputs: dict[str, Any] = {**MANAGED_CLUSTER, "autoScalerProfile": {"expander": "least-waste"}}
    azure.change("containerservice:ManagedCluster", made, MANAGED_CLUSTER, **inputs)
    assert settings_of(azure.store, made.id) == Autoscaling(expander="least-waste")


def test_a_profile_that_is_left_out_of_a_change_stays(tmp_path: Path) -> None:
    """And it goes with the cluster."""
    azure = Azure(tmp_path).with_network()
    inputs: dict[str, Any] = {**MANAGED_CLUSTER, "autoScalerProfile": PROFILE}
    made = azure.make("containerservice:ManagedCluster", **inputs)
    autoscaling = settings_of(azure.store, made.id)
    azure.change("containerservice:ManagedCluster", made, inputs, **{**MANAGED_CLUSTER, "tags": {"a": "b"}})
    assert settings_of(azure.store, made.id) == autoscaling
    azure.remove("containerservice:ManagedCluster", CLUSTER)
    assert not [identity for identity in azure.ids() if "managedClusters" in identity]
