"""Comparison of an existing Kueue's settings with those that the queues depend on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, cast

import yaml

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.addons import Kueue
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.placement.queue_objects import (
    DEFAULT_WAIT,
    FAIR_SHARING,
    QUEUES_LABEL,
    frameworks,
    uncounted,
    wait_for_pods,
)
from ebbtide.values import durations
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.selectors import selects

CONFIG_KEY: Final = "controller_manager_config.yaml"
_WEBHOOK: Final = "-webhook-service"

DEFINITION: Final = next(iter(Kueue.spec.definitions))
"""CustomResourceDefinition whose conversion webhook is the controller."""

_WAITS: Final = (0, 19)
"""The first release that waits for pods by default (Kueue, CHANGELOG-0.19.md)."""
_VISIBILITY_PORT: Final = 8082
"""Default port of the aggregated API (Kueue 0.19.2, apis/config/v1beta2/defaults.go)."""
_OPEN_PORTS: Final = (443, 10250)
"""Ports of nodes that a private control plane reaches (GKE docs, private clusters, 2026)."""
_TAG: Final = re.compile(r":v?(\d+)\.(\d+)\.\d+")
_GATES: Final = "--feature-gates="
_DEFAULT_FRAMEWORKS: Final = ("batch/job",)
_NEEDED_GATES: Final = ("FlavorFungibility", "HierarchicalCohorts")
"""Feature gates, on by default, that the queues depend on: pools in order, and cohorts that own quota."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Names of an installed Kueue's objects, which begin with the name of its release in its chart and with
    `kueue` in its manifests (Kueue 0.19.2, charts/kueue/templates/_helpers.tpl and config/default).

    Attributes:
        name: the beginning of their names.
        versions: served versions of its API.
    """

    namespace: str = Kueue.spec.namespace
    name: str = "kueue"
    versions: tuple[str, ...] = ()

    @property
    def config_map(self) -> str:
        """ConfigMap with the controller's configuration, under `CONFIG_KEY`."""
        return f"{self.name}-manager-config"

    @property
    def deployment(self) -> str:
        """Deployment of the controller."""
        return f"{self.name}-controller-manager"


def installation(definition: Mapping[str, Any] | None) -> Installation:
    """Return the installation that serves Kueue's kinds.

    Args:
        definition: spec of `DEFINITION`; None if it was not read.
    """
    if not definition:
        return Installation()
    versions = tuple(str(item["name"]) for item in definition.get("versions") or () if item.get("served"))
    service = part(part(part(part(definition, "conversion"), "webhook"), "clientConfig"), "service")
    if not str(service.get("name", "")).endswith(_WEBHOOK):
        return Installation(versions=versions)
    return Installation(str(service["namespace"]), str(service["name"]).removesuffix(_WEBHOOK), versions)


def controller_of(
    data: Mapping[str, str], spec: Mapping[str, Any]
) -> tuple[Mapping[str, Any], str, Sequence[str]]:
    """Return configuration, image and arguments of a controller.

    Args:
        data: data of its ConfigMap.
        spec: spec of its Deployment; empty if unknown.
    """
    settings: Mapping[str, Any] = yaml.safe_load(data.get(CONFIG_KEY, "")) or {}
    containers: Sequence[Mapping[str, Any]] = part(part(spec, "template"), "spec").get("containers") or ({},)
    container = containers[0]
    return settings, str(container.get("image", "its controller")), container.get("args") or ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting of an existing Kueue that differs from those that the queues depend on.

    Attributes:
        fault: the setting as path, the problem, its consequence and the fix.
        is_refused: True if the queues cannot work; False for a warning.
    """

    fault: Fault
    is_refused: bool = False


def differences(
    cluster: Cluster, settings: Mapping[str, Any], image: str, arguments: Sequence[str] = ()
) -> Iterator[Difference]:
    """Yield the differences of an existing Kueue from what a declaration's queues depend on.

    Defaults are those of Kueue 0.19.2 (apis/config/v1beta2/defaults.go). In v1beta1, fair sharing and the
    time limit have a field `enable`.

    Args:
        settings: configuration of the controller, of any version of its API.
        image: image of the controller.
    """
    version = next(((int(one), int(two)) for one, two in _TAG.findall(image)), None)
    yield from _versions(version, image)
    yield from _frameworks(cluster, settings)
    yield from _sharing(cluster, settings)
    yield from _waiting(cluster, settings, version)
    yield from _namespaces(cluster, settings)
    excluded = part(settings, "resources").get("excludeResourcePrefixes") or ()
    for name in uncounted(cluster):
        if not any(name.startswith(str(prefix)) for prefix in excluded):
            yield _warned(
                "resources.excludeResourcePrefixes",
                f"It does not have {name}.",
                "Work that requests some waits indefinitely: no flavor has it.",
                f"resources: {{excludeResourcePrefixes: [{', '.join(map(str, (*excluded, name)))}]}}",
            )
    port = part(settings, "visibilityServer").get("bindPort") or _VISIBILITY_PORT
    if cluster.site.cloud is CloudKind.GKE and port not in _OPEN_PORTS:
        yield _warned(
            "visibilityServer.bindPort",
            f"It is {port}, which the control plane of a private cluster reaches only by a firewall rule.",
            "Without one, no namespace of the cluster can be deleted, and a destroy waits for the teams'.",
            f"visibilityServer: {{bindPort: {_OPEN_PORTS[0]}}}, with the target port of its Service",
        )
    gates = ",".join(item.removeprefix(_GATES) for item in arguments if item.startswith(_GATES)).split(",")
    for gate in _NEEDED_GATES:
        if f"{gate}=false" in gates:
            yield _refused(
                "--feature-gates",
                f"{gate} is off.",
                "Queues would not borrow the nodes of their cohort, or would use one pool alone.",
                f"{gate}=true",
            )


def part(settings: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a section of the configuration; empty if missing."""
    return cast("Mapping[str, Any]", settings.get(key) or {})


def _warned(setting: str, problem: str, consequence: str, line: str) -> Difference:
    return Difference(Fault(setting, problem, consequence, f"Write there: {line}"))


def _refused(setting: str, problem: str, consequence: str, line: str) -> Difference:
    return Difference(Fault(setting, problem, consequence, f"Write there: {line}"), is_refused=True)


def _versions(version: tuple[int, int] | None, image: str) -> Iterator[Difference]:
    tested = PINS["kueue"].version
    if version != tuple(int(number) for number in tested.split(".")[:2]):
        fix = f"Try the queues on a cluster that is not needed, or have Kueue at {tested}."
        problem = (
            f"Kueue {version[0]}.{version[1]} was not tested with Ebbtide."
            if version
            else f"The version of {image} is unknown."
        )
        yield Difference(Fault("image", problem, "Queues may behave differently.", fix))


def _frameworks(cluster: Cluster, settings: Mapping[str, Any]) -> Iterator[Difference]:
    enabled = part(settings, "integrations").get("frameworks") or _DEFAULT_FRAMEWORKS
    missing = [name for name in frameworks(cluster) if name not in enabled]
    for name in missing:
        make = _warned if name == "pod" and not _queues_pods(cluster) else _refused
        yield make(
            "integrations.frameworks",
            f"{name} is off.",
            "Its work with a queue name would start without quota, or never start.",
            f"integrations: {{frameworks: [{', '.join(map(str, (*enabled, *missing)))}]}}",
        )


def _queues_pods(cluster: Cluster) -> bool:
    """Return whether pods are queued without a Job: steps of pipelines, and members' own."""
    return cluster.addons.pipelines is not None or any(team.interactive for team in cluster.teams)


def _sharing(cluster: Cluster, settings: Mapping[str, Any]) -> Iterator[Difference]:
    sharing = settings.get("fairSharing")
    if sharing is None or sharing.get("enable") is False:
        weighted = [team.name for team in cluster.teams if team.weight != 1]
        ignored = f", and the weights of {', '.join(weighted)} have no effect" if weighted else ""
        yield _warned(
            "fairSharing",
            "Fair sharing is off.",
            f"Free nodes go to the oldest work of any team{ignored}.",
            f"fairSharing: {{preemptionStrategies: [{', '.join(FAIR_SHARING['preemptionStrategies'])}]}}",
        )


def _waiting(
    cluster: Cluster, settings: Mapping[str, Any], version: tuple[int, int] | None
) -> Iterator[Difference]:
    waiting, needed = settings.get("waitForPodsReady"), wait_for_pods(cluster)
    line = f"waitForPodsReady: {{timeout: {durations.in_seconds(needed)}, recoveryTimeout: "
    line = f"{line}{durations.in_seconds(needed)}}}"
    is_on = waiting.get("enable", True) if waiting is not None else (version or _WAITS) >= _WAITS
    if not is_on:
        yield _warned(
            "waitForPodsReady",
            "It is off.",
            "Work whose nodes never come keeps its quota, and the next work waits.",
            line,
        )
        return
    limit = _duration(part(settings, "waitForPodsReady").get("timeout") or durations.in_seconds(DEFAULT_WAIT))
    if limit is not None and limit < needed:
        yield _warned(
            "waitForPodsReady.timeout",
            f"It is {durations.rounded(limit)}.",
            f"Nodes may take {durations.rounded(needed)}, and work that waits for them is queued again.",
            line,
        )


def _duration(written: object) -> timedelta | None:
    """Parse a duration as Go writes it, `1h0m0s`; None if it is none."""
    try:
        return durations.parse(written)
    except ValueError:
        return None


def _namespaces(cluster: Cluster, settings: Mapping[str, Any]) -> Iterator[Difference]:
    selector = part(settings, "managedJobsNamespaceSelector")
    for tenant in cluster.tenants:
        name = tenant.namespace_name
        labels = {"kubernetes.io/metadata.name": name, QUEUES_LABEL: "true"}
        if cluster.uses_queues(tenant) and not selects(selector, labels):
            make = _refused if _queues_pods(cluster) else _warned
            yield make(
                "managedJobsNamespaceSelector",
                f"It does not select the namespace {name}.",
                "Pods with a queue name would start there without quota.",
                f'managedJobsNamespaceSelector: {{matchLabels: {{{QUEUES_LABEL}: "true"}}}}, or label the '
                "namespace",
            )
    if settings.get("manageJobsWithoutQueueName"):
        yield _warned(
            "manageJobsWithoutQueueName",
            "It is true.",
            "Jobs without a queue name never start, on the pools without a queue neither.",
            "manageJobsWithoutQueueName: false",
        )
