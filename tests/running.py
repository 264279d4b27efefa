"""A declaration with every add-on, and its recorded objects, for tests."""

from collections.abc import Mapping
from typing import Any, cast

from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import Secret
from ebbtide.declaration.model.addons import ADD_ONS
from tests.declarations import AKS, BASES, GKE, Declaration, changed, pool

KUBERNETES = "1.37"


CHART = "kubernetes:helm.sh/v4:Chart"


BUILT_IN = ("v1", "apps/v1", "rbac.authorization.k8s.io/v1", "networking.k8s.io/v1")


EVERYTHING: dict[str, dict[str, Any]] = {
    **{name: {} for name, add_on in ADD_ONS.items() if add_on.spec.namespace},
    "kueue": {"replicas": 2},
}


TEAMS: list[dict[str, Any]] = [
    {"name": "vision", "members": ["vision@acme.example"], "bucket": {}, "volume": {}, "registry": {}},
    {"name": "speech", "namespace": {"name": "default", "create": False}},
]


def full(cloud: str, **addons: Any) -> Declaration:
    """A declaration with every add-on, and teams that have everything."""
    files = {"gke": "filestore", "aks": "azure-files"}[cloud]
    teams = [*TEAMS, {"name": "audio", "volume": {"kind": files}, "weight": 2}]
    declaration = changed(BASES[cloud], teams=teams, addons=EVERYTHING | addons)
    pool(declaration, "system")["nodes"] = {"max": 6}
    declaration["queues"] = [{"name": "gpus", "pools": ["t4"]}, {"name": "cpu", "pools": ["cpu"]}]
    return declaration


def in_cluster(recording: Recording) -> list[Resource]:
    """Objects that the program creates in the cluster: neither components nor what represents many."""
    of_cluster = (item for item in recording if item.custom and item.type.startswith("kubernetes:"))
    return [item for item in of_cluster if not item.read]


def manifest(item: Resource) -> dict[str, Any]:
    """An object as the API server would see it, secrets in the open."""
    return cast("dict[str, Any]", _plain(item.inputs))


def _plain(value: Any) -> Any:
    match value:
        case Secret():
            return _plain(value.value)
        case Mapping():
            items = cast("Mapping[str, Any]", value)
            return {key: _plain(inner) for key, inner in items.items()}
        case list() | tuple():
            return [_plain(inner) for inner in cast("list[Any]", value)]
        case _:
            return value


def after(recording: Recording, item: Resource) -> set[str]:
    """Return the URNs of the resources that are created before a resource, indirect dependencies among
    them."""
    urns: set[str] = set()
    rest = list(item.dependencies)
    while rest:
        urn = rest.pop()
        if urn not in urns:
            urns.add(urn)
            rest += recording[urn].dependencies
    return urns


def operator(recording: Recording) -> dict[str, Any] | None:
    """Return the values of NVIDIA's operator, if it is installed."""
    charts = [item for item in recording.of_type(CHART) if item.inputs["name"] == "gpu-operator"]
    return manifest(charts[0])["values"] if charts else None


_STEADY = pool(GKE, "t4") | {"name": "steady", "capacity": "on-demand"}
FALLING_BACK = changed(
    GKE,
    pools=[*GKE["pools"], _STEADY],
    queues=[{"name": "gpus", "pools": ["t4", "steady"], "fallback": True}],
)
"""Pools of GPUs in a ComputeClass."""


MODES: list[tuple[Declaration, dict[str, Any]]] = [
    (GKE, {}),
    (GKE, {"drivers": "daemonset"}),
    (FALLING_BACK, {"drivers": "daemonset"}),
    (GKE, {"drivers": "gpu-operator"}),
    (AKS, {}),
    (AKS, {"drivers": "gpu-operator"}),
]


def over_images(declaration: Declaration) -> list[Declaration]:
    """The declaration, and on GKE the same with its GPU pools on Ubuntu."""
    if declaration["cloud"]["kind"] != "gke":
        return [declaration]
    ubuntu = changed(declaration)
    for name in ("t4", "a100"):
        pool(ubuntu, name)["image"] = "ubuntu"
    return [declaration, ubuntu]
