"""Manifests of the cost recorder."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from ebbtide.catalog import PINS, footprint
from ebbtide.costs.recorder import NAMESPACE
from ebbtide.model import Cluster, Team
from ebbtide.placement.derive import profile

from .manifest import obj
from .members import rbac_rule, readers
from .network_policies import policy
from .system_placement import system_placement

NAME = "recorder"
"""Name of the account, of the roles, and of the ConfigMap with the program."""

_MINUTES = 5
_RBAC = "rbac.authorization.k8s.io"
_ACCOUNT = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
_PROGRAM, _SETTINGS, _FOLDER = "recorder.py", "settings.json", "/recorder"


def objects(declaration: Cluster) -> Iterator[dict[str, Any]]:
    """Yield the recorder's objects besides its namespace.

    The account reads nodes, events about nodes (which are in `default`), and pods with their events and
    Jobs in the tenants' namespaces, and writes ConfigMaps in its own namespace.
    """
    yield obj("v1", "ServiceAccount", NAME, NAMESPACE, automountServiceAccountToken=False)
    nodes = f"ebbtide-costs-{declaration.name}"
    yield obj(f"{_RBAC}/v1", "ClusterRole", nodes, rules=[rbac_rule("", ["nodes"], ["list"])])
    yield _binding("ClusterRole", nodes, None, [_ACCOUNT])
    yield from _granted("default", nodes, [rbac_rule("", ["events"], ["list"])], [_ACCOUNT])
    writes = rbac_rule("", ["configmaps"], ["get", "list", "create", "patch"])
    yield from _granted(NAMESPACE, NAME, [writes], [_ACCOUNT])
    members = [subject for subject in readers(declaration) if subject["name"] != "system:serviceaccounts"]
    if members:
        yield from _granted(NAMESPACE, "reader", [rbac_rule("", ["configmaps"], ["get", "list"])], members)
    yield obj("v1", "ConfigMap", NAME, NAMESPACE, data=_data(declaration))
    yield policy("no-ingress", NAMESPACE, [])
    yield _cron_job(declaration)


def attempts_readers(declaration: Cluster, team: Team) -> Iterator[dict[str, Any]]:
    """Yield the role by which the recorder reads the pods and Jobs of a tenant's namespace, and its
    binding."""
    if declaration.addons.costs is not None:
        rules = [rbac_rule("", ["pods", "events"], ["list"]), rbac_rule("batch", ["jobs"], ["list"])]
        yield from _granted(team.namespace_name, "cost-recorder", rules, [_ACCOUNT])


def _granted(
    namespace: str, name: str, rules: list[dict[str, Any]], subjects: list[dict[str, str]]
) -> Iterator[dict[str, Any]]:
    yield obj(f"{_RBAC}/v1", "Role", name, namespace, rules=rules)
    yield _binding("Role", name, namespace, subjects)


def _binding(kind: str, name: str, namespace: str | None, subjects: list[dict[str, str]]) -> dict[str, Any]:
    role = {"apiGroup": _RBAC, "kind": kind, "name": name}
    return obj(f"{_RBAC}/v1", f"{kind}Binding", name, namespace, roleRef=role, subjects=subjects)


def _data(declaration: Cluster) -> dict[str, str]:
    """Return the program and its settings: the pools with their prices, and the teams by namespace."""
    placed = profile(declaration)
    settings = {
        "pools": [
            {
                "name": pool.name,
                "option": pool.capacity,
                "labels": {item.key: item.values[0] for item in pool.affinity},
                "resource": pool.accelerator.resource if pool.accelerator else "",
                "price": asdict(pool.price),
            }
            for pool in placed.pools
        ],
        "teams": {team.namespace: team.name for team in placed.teams},
    }
    program = (files("ebbtide") / "costs" / _PROGRAM).read_text(encoding="utf-8")
    return {_PROGRAM: program, _SETTINGS: json.dumps(settings, indent=2)}


def _cron_job(declaration: Cluster) -> dict[str, Any]:
    placed, needs = system_placement(declaration), footprint("costs").requests
    requests = {"cpu": f"{int(needs.cpu_m)}m", "memory": f"{int(needs.memory_mib)}Mi"}
    container = {
        "name": NAME,
        "image": PINS["image-python"].version,
        "command": ["python3", f"{_FOLDER}/{_PROGRAM}", f"{_FOLDER}/{_SETTINGS}"],
        "resources": {"requests": requests, "limits": {"memory": requests["memory"]}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": NAME, "mountPath": _FOLDER, "readOnly": True}],
    }
    pod = {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "restartPolicy": "Never",
        "priorityClassName": placed.priority_class,
        "nodeSelector": placed.node_selector,
        "tolerations": placed.tolerations,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": NAME, "configMap": {"name": NAME}}],
    }
    job = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": _MINUTES * 60 - 30,
        "ttlSecondsAfterFinished": 3600,
        "template": {"spec": pod},
    }
    return obj(
        "batch/v1",
        "CronJob",
        NAME,
        NAMESPACE,
        spec={
            "schedule": f"*/{_MINUTES} * * * *",
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 120,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {"spec": job},
        },
    )
