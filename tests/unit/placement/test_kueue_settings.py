"""An existing Kueue is compared with what the queues depend on."""

import copy
from typing import Any

import pytest
import yaml

from components.addons.existing_kueue import ExistingKueueError, check
from components.addons.kueue import configuration
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.kueue_settings import CONFIG_KEY, Difference, differences
from tests.contract.flips import GKE_EXISTING
from tests.declarations import Declaration, changed

IMAGE = "registry.k8s.io/kueue/kueue:v0.19.2"
QUEUED = changed(
    GKE_EXISTING,
    queues=[{"name": "cpus", "pools": ["work"], "localQueues": [{"namespace": "default"}]}],
    addons={"kueue": {"existing": True}},
)


def found(
    settings: Any, image: str = IMAGE, arguments: tuple[str, ...] = (), written: Declaration = QUEUED
) -> dict[str, Difference]:
    """The differences by setting."""
    listed = list(differences(declare(written), settings, image, arguments))
    assert all(str(item.fault) for item in listed)
    return {item.fault.path: item for item in listed}


def test_ebbtides_own_configuration_has_no_difference() -> None:
    """A Kueue that another stack of Ebbtide installs suits the queues."""
    assert found(configuration(declare(QUEUED))) == {}
    gpus = {"machine": "g2-standard-8", "capacity": "flex-start"}
    for_stock = changed(QUEUED, pools=[{**QUEUED["pools"][0], **gpus}])
    assert found(configuration(declare(for_stock)), written=for_stock) == {}
    assert found(configuration(declare(QUEUED)), written=for_stock).keys() == {"waitForPodsReady.timeout"}


def test_defaults_of_kueue_are_warned_of() -> None:
    """An installation from the chart's own values: nothing is refused, and each setting is named."""
    settings = {"integrations": {"frameworks": ["batch/job", "pod"]}}
    listed = found(settings)
    assert listed.keys() == {
        "fairSharing",
        "waitForPodsReady.timeout",
        "resources.excludeResourcePrefixes",
        "visibilityServer.bindPort",
    }
    assert not any(item.is_refused for item in listed.values())
    assert listed["waitForPodsReady.timeout"].fault.problem == "It is 30 minutes."


@pytest.mark.parametrize(
    ("image", "path", "refused"),
    [
        ("registry.k8s.io/kueue/kueue:v0.14.8", "image", True),
        ("registry.k8s.io/kueue/kueue:v0.15.0", "image", False),
        ("mcr.microsoft.com/oss/kueue@sha256:1", "image", False),
        (IMAGE, "", False),
    ],
)
def test_versions_without_the_api_are_refused(image: str, path: str, refused: bool) -> None:  # noqa: FBT001
    """Kueue serves v1beta2 from 0.15 on; another version than the tested one is a warning."""
    listed = found(configuration(declare(QUEUED)), image)
    assert list(listed) == [path] * bool(path)
    assert all(item.is_refused is refused for item in listed.values())


@pytest.mark.parametrize(
    ("change", "arguments", "path", "refused"),
    [
        ({"integrations": {"frameworks": ["pod"]}}, (), "integrations.frameworks", True),
        ({"integrations": {"frameworks": ["batch/job"]}}, (), "integrations.frameworks", False),
        ({"fairSharing": None}, (), "fairSharing", False),
        ({"fairSharing": {"enable": False}}, (), "fairSharing", False),
        ({"waitForPodsReady": {"enable": False}}, (), "waitForPodsReady", False),
        ({"waitForPodsReady": {"timeout": "5m0s"}}, (), "waitForPodsReady.timeout", False),
        ({"manageJobsWithoutQueueName": True}, (), "manageJobsWithoutQueueName", False),
        (
            {"managedJobsNamespaceSelector": {"matchLabels": {"kueue": "on"}}},
            (),
            "managedJobsNamespaceSelector",
            False,
        ),
        (
            {
                "managedJobsNamespaceSelector": {
                    "matchExpressions": [
                        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}
                    ]
                }
            },
            (),
            "managedJobsNamespaceSelector",
            False,
        ),
        ({}, ("--feature-gates=A=true,HierarchicalCohorts=false",), "--feature-gates", True),
    ],
)
def test_each_difference_is_found(
    change: dict[str, Any],
    arguments: tuple[str, ...],
    path: str,
    refused: bool,  # noqa: FBT001
) -> None:
    """One setting at a time; those without which the queues admit nothing are refused."""
    settings = {**configuration(declare(QUEUED)), **copy.deepcopy(change)}
    listed = found(settings, arguments=arguments)
    assert list(listed) == [path]
    assert listed[path].is_refused is refused


def test_every_reason_is_in_one_refusal() -> None:
    """A program with an existing Kueue ends with all reasons; without its objects, nothing is said."""
    spec = {"template": {"spec": {"containers": [{"image": "kueue:v0.13.0"}]}}}
    data = {CONFIG_KEY: yaml.safe_dump({"integrations": {"frameworks": ["pod"]}})}
    cluster = declare(QUEUED)
    with pytest.raises(ExistingKueueError) as refused:
        check(cluster, data, spec)
    assert "Kueue 0.13 does not serve kueue.x-k8s.io/v1beta2" in str(refused.value)
    assert "integrations.frameworks: batch/job is off." in str(refused.value)
    assert not check(cluster, None, None)
