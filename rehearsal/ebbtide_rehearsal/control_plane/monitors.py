"""The CRDs of the clouds' managed Prometheus: PodMonitoring on GKE, PodMonitor and ServiceMonitor on AKS.

Fields are those of the references; those that no stack of Ebbtide uses are not validated. Sources:
GoogleCloudPlatform/prometheus-engine, doc/api.md (2026); prometheus-operator, api-reference/api.md (2026),
which Azure's CRDs follow in a group of their own (azure-monitor docs, prometheus-metrics-scrape-crd,
2025-08).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_ANYTHING: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_INTERVAL: Final[Schema] = {"type": "string", "pattern": r"^([0-9]+(ms|s|m|h))+$"}
_NAME_OR_NUMBER: Final[Schema] = {"x-kubernetes-int-or-string": True}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def _with(required: tuple[str, ...], schema: Schema) -> Schema:
    return {**schema, "required": [*required]}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_SELECTOR: Final = _object(
    matchLabels={"type": "object", "additionalProperties": _TEXT}, matchExpressions=_list(_ANYTHING)
)
_RELABELING: Final = _object(
    sourceLabels=_list(_TEXT),
    regex=_TEXT,
    replacement=_TEXT,
    targetLabel=_TEXT,
    action={
        "type": "string",
        "enum": ["replace", "keep", "drop", "hashmod", "labelmap", "labeldrop", "labelkeep"],
    },
)
_SECRET: Final = _object(name=_TEXT, key=_TEXT, namespace=_TEXT)
_AUTHORIZATION: Final = _object(type=_TEXT, credentials=_object(secret=_SECRET))
_SCHEME: Final[Schema] = {"type": "string", "enum": ["http", "https"]}
_ENDPOINT: Final[Mapping[str, Schema]] = {
    "path": _TEXT,
    "interval": _INTERVAL,
    "scheme": _SCHEME,
    "authorization": _AUTHORIZATION,
}
_OPERATORS: Final[Mapping[str, Schema]] = {
    **_ENDPOINT,
    "port": _TEXT,
    "honorLabels": _BOOLEAN,
    "tlsConfig": _object(insecureSkipVerify=_BOOLEAN, serverName=_TEXT),
    "metricRelabelings": _list(_RELABELING),
}
_SPECS: Final[Mapping[str, Mapping[tuple[str, str], Schema]]] = {
    "gke": {
        ("monitoring.googleapis.com", "PodMonitoring"): _with(
            ("selector", "endpoints"),
            _object(
                selector=_SELECTOR,
                endpoints=_list(
                    _with(
                        ("port", "interval"),
                        _object(
                            **_ENDPOINT,
                            port=_NAME_OR_NUMBER,
                            tls=_object(insecureSkipVerify=_BOOLEAN, serverName=_TEXT),
                            metricRelabeling=_list(_RELABELING),
                        ),
                    )
                ),
                targetLabels=_ANYTHING,
            ),
        )
    },
    "aks": {
        ("azmonitoring.coreos.com", "PodMonitor"): _with(
            ("selector", "podMetricsEndpoints"),
            _object(
                selector=_SELECTOR,
                namespaceSelector=_ANYTHING,
                podMetricsEndpoints=_list(_object(**_OPERATORS)),
                podTargetLabels=_list(_TEXT),
            ),
        ),
        ("azmonitoring.coreos.com", "ServiceMonitor"): _with(
            ("selector", "endpoints"),
            _object(
                selector=_SELECTOR,
                namespaceSelector=_ANYTHING,
                endpoints=_list(_object(**_OPERATORS, bearerTokenFile=_TEXT)),
            ),
        ),
    },
}


def definitions(cloud: str) -> Iterator[Schema]:
    """Yield the CRDs of a cloud's managed Prometheus."""
    for (group, kind), spec in _SPECS[cloud].items():
        plural = f"{kind.lower()}s"
        root = {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": _ANYTHING}}
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "names": {
                    "kind": kind,
                    "listKind": f"{kind}List",
                    "plural": plural,
                    "singular": kind.lower(),
                },
                "scope": "Namespaced",
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
                ],
            },
        }
