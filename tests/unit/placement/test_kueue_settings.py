"""An existing Kueue is compared with what the queues depend on."""

import copy
from typing import Any

import pytest
import yaml

from components.addons.existing import ExistingAddOnError, check
from components.addons.kueue import configuration
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.kueue_settings import CONFIG_KEY, Difference, Installation, differences, installation
from tests.contract.flips import GKE_EXISTING
from tests.declarations import Declaration, changed

IMAGE = f"registry.k8s.io/kueue/kueue:v{PINS['kueue'].version}"
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
    ("image", "warned"),
    [
        ("registry.k8s.io/kueue/kueue:v0.15.0", "Kueue 0.15 was not tested"),
        ("mcr.microsoft.com/oss/kueue@sha256:1", "The version of mcr.microsoft.com/oss/kueue@sha256:1 is"),
        (IMAGE, ""),
    ],
)
def test_untested_versions_are_warned_of(image: str, warned: str) -> None:
    """Another version than the tested one is a warning."""
    listed = found(configuration(declare(QUEUED)), image)
    assert [item.fault.problem.startswith(warned) for item in listed.values()] == [True] * bool(warned)
    assert not any(item.is_refused for item in listed.values())


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
    arguments = ["--feature-gates=FlavorFungibility=false"]
    spec = {"template": {"spec": {"containers": [{"image": IMAGE, "args": arguments}]}}}
    data = {CONFIG_KEY: yaml.safe_dump({"integrations": {"frameworks": ["pod"]}})}
    cluster = declare(QUEUED)
    with pytest.raises(ExistingAddOnError) as refused:
        check(cluster, Installation(), data, spec)
    assert "FlavorFungibility is off." in str(refused.value)
    assert "integrations.frameworks: batch/job is off." in str(refused.value)
    assert not check(cluster, Installation(), None, None)


@pytest.mark.parametrize(
    ("service", "names"),
    [
        (None, ("kueue-system", "kueue-manager-config", "kueue-controller-manager")),
        (
            {"name": "else", "namespace": "x"},
            ("kueue-system", "kueue-manager-config", "kueue-controller-manager"),
        ),
        (
            {"name": "my-kueue-webhook-service", "namespace": "ml"},
            ("ml", "my-kueue-manager-config", "my-kueue-controller-manager"),
        ),
    ],
)
def test_an_installation_is_found_by_its_webhook(service: Any, names: tuple[str, ...]) -> None:
    """Names and namespace follow those of the service that converts the kinds; without one, the defaults."""
    webhook = {"webhook": {"clientConfig": {"service": service}}} if service else {}
    definition = {
        "conversion": webhook,
        "versions": [{"name": "v1beta1", "served": False}, {"name": "v1beta2", "served": True}],
    }
    it = installation(definition)
    assert (it.namespace, it.config_map, it.deployment) == names
    assert it.versions == ("v1beta2",)
