"""Inputs of clusters and node pools, read as the clouds' own client libraries type them."""

import inspect
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, cast

from azure.mgmt.containerservice import models
from google.cloud import container_v1
from google.protobuf.json_format import ParseDict, ParseError

_GKE_TYPES: dict[str, Any] = {
    "gcp:container/cluster:Cluster": container_v1.Cluster,
    "gcp:container/nodePool:NodePool": container_v1.NodePool,
}
_AKS_TYPES: dict[str, Any] = {
    "azure-native:containerservice:ManagedCluster": models.ManagedCluster,
    "azure-native:containerservice:AgentPool": models.AgentPool,
}
TYPES = (*_GKE_TYPES, *_AKS_TYPES)

_GKE_NAMES: dict[str, dict[str, str | None]] = {
    "gcp:container/cluster:Cluster": {
        # The provider's own, or part of the request's address.
        "project": None,
        "deletionProtection": None,
        "networkingMode": None,
        "removeDefaultNodePool": None,
        "datapathProvider": "networkConfig.datapathProvider",
        "minMasterVersion": "initialClusterVersion",
        "enableShieldedNodes": "shieldedNodes.enabled",
        "clusterAutoscaling": "autoscaling",
        "clusterAutoscaling.enabled": "enableNodeAutoprovisioning",
        "loggingConfig.enableComponents": "componentConfig.enableComponents",
        "monitoringConfig.enableComponents": "componentConfig.enableComponents",
        "monitoringConfig.managedPrometheus": "managedPrometheusConfig",
    },
    "gcp:container/nodePool:NodePool": {
        "project": None,
        "cluster": None,
        "location": None,
        "nodeConfig": "config",
        "nodeCount": "initialNodeCount",
        "nodeLocations": "locations",
        "maxPodsPerNode": "maxPodsConstraint.maxPodsPerNode",
        "nodeConfig.guestAccelerators": "accelerators",
        "nodeConfig.guestAccelerators.count": "acceleratorCount",
        "nodeConfig.guestAccelerators.type": "acceleratorType",
    },
}
"""Names of Terraform's provider, and so of pulumi-gcp, that differ from the API's, by their path. A name of
the API is below the place of the one that it stands for."""

_TEXTS_OF_FLAGS = {"TRUE": True, "FALSE": False}
_ADDRESS = ("resourceGroupName", "resourceName", "agentPoolName")
_PLAIN: dict[str, type | tuple[type, ...]] = {"str": str, "int": int, "bool": bool, "float": (int, float)}


def misfits(kind: str, inputs: Mapping[str, Any]) -> list[str]:
    """Fields and values that the library of a resource's cloud does not have."""
    if kind in _AKS_TYPES:
        given = {key: value for key, value in inputs.items() if key not in _ADDRESS}
        return list(_azure(_AKS_TYPES[kind], given, ""))
    try:
        ParseDict(_google(inputs, _GKE_NAMES[kind], ""), _GKE_TYPES[kind].pb()(), ignore_unknown_fields=False)
    except ParseError as error:
        return [str(error)]
    return []


def _google(inputs: Mapping[str, Any], names: Mapping[str, str | None], at: str) -> dict[str, Any]:
    """Inputs by the API's names; what no name stands for stays, for the API's message to refuse."""
    made: dict[str, Any] = {}
    for key, value in inputs.items():
        path = f"{at}.{key}" if at else key
        target = names.get(path, key)
        if target is None:
            continue
        # A key of labels may have dots.
        *above, last = target.split(".") if path in names else [key]
        place = made
        for step in above:
            place = place.setdefault(step, {})
        place[last] = _value(value, names, path)
    return made


def _value(value: Any, names: Mapping[str, str | None], path: str) -> Any:
    match value:
        case Mapping():
            return _google(cast("Mapping[str, Any]", value), names, path)
        case list():
            return [_value(item, names, path) for item in cast("list[Any]", value)]
        case str() if path.endswith("ReadonlyPortEnabled"):
            return _TEXTS_OF_FLAGS[value]
        case _:
            return value


def _azure(model: Any, value: Mapping[str, Any], at: str) -> Iterator[str]:
    attributes: dict[str, dict[str, str]] = model._attribute_map  # noqa: SLF001 - the library's own description
    rules: dict[str, dict[str, Any]] = model._validation  # noqa: SLF001
    by_key = {_camel(entry["key"].rpartition(".")[2]): name for name, entry in attributes.items()}
    for key, item in value.items():
        name = by_key.get(key)
        path = f"{at}.{key}".lstrip(".")
        if name is None or rules.get(name, {}).get("readonly"):
            yield f"{path}: {model.__name__} has no such field"
            continue
        yield from _azure_value(attributes[name]["type"], item, path, _choices(model, name))


def _camel(key: str) -> str:
    """A key as azure-native has it: the autoscaler's `scan-interval` is `scanInterval`."""
    return re.sub("-(.)", lambda match: match[1].upper(), key)


def _azure_value(kind: str, value: Any, path: str, choices: tuple[str, ...]) -> Iterator[str]:
    if kind[0] in "[{":
        # An identity's map of ids is a list of them in azure-native.
        items = (
            cast("Mapping[str, Any]", value).values()
            if isinstance(value, Mapping)
            else cast("list[Any]", value)
        )
        for item in items if kind[0] == "[" or isinstance(value, Mapping) else ():
            yield from _azure_value(kind[1:-1], item, path, choices)
    elif kind in _PLAIN:
        fits = isinstance(value, _PLAIN[kind]) and isinstance(value, bool) is (kind == "bool")
        if not fits or (choices and value not in choices):
            yield f"{path}: {value!r} is no {kind}{' of ' + ', '.join(choices) if choices else ''}"
    else:
        yield from _azure(getattr(models, kind), value, path)


def _choices(model: Any, name: str) -> tuple[str, ...]:
    """Values of an enumeration, which the library names in the annotation of its constructor."""
    parameter = inspect.signature(model.__init__).parameters.get(name)
    match = re.search(r"_models\.(\w+)", str(parameter.annotation)) if parameter else None
    enumeration = getattr(models, match[1], None) if match else None
    if not (isinstance(enumeration, type) and issubclass(enumeration, Enum)):
        return ()
    return tuple(str(member.value) for member in enumeration)
