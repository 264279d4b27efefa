"""The cost recorder: its component and manifests."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import pulumi

from ebbtide.declaration.catalog.resources import footprint
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.placement.derive import profile

from .add_on import AddOnArgs, AddOnComponent, system_placement
from .manifest import obj
from .security import binding, granted, policy, rbac_rule, readers
from .teams import RECORDER

NAME = RECORDER["name"]
"""Name of the account, of the roles, and of the ConfigMap with the program."""

NAMESPACE = RECORDER["namespace"]

_MINUTES = 5
_RBAC = "rbac.authorization.k8s.io"
_PROGRAM, _SETTINGS, _FOLDER = "recorder.py", "settings.json", "/recorder"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_MODULES = ("pod_requests.py", "quantities.py")
"""Modules of Ebbtide that the program imports, which need no package either."""


class Costs(AddOnComponent):
    """A CronJob that records what attempts and nodes have cost, as ConfigMaps in its namespace.

    They are deleted with the cluster, or with the add-on.
    """

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args, opts)
        namespace = self._system_namespace(NAMESPACE, args.depends_on)
        needs = (namespace, *args.depends_on)
        created: list[pulumi.Resource] = []
        for manifest in objects(args.declaration):
            kind, object_name = manifest["kind"].lower(), manifest["metadata"]["name"]
            namespace = manifest["metadata"].get("namespace", "")
            role = f"{name}-{kind}-{object_name}{'-default' if namespace == 'default' else ''}"
            created.append(self._create(role, manifest, needs))
        self.ready = (*needs, *created)
        self.register_outputs({})


def objects(declaration: Cluster) -> Iterator[dict[str, Any]]:
    """Yield the recorder's objects besides its namespace.

    The account reads nodes, events about nodes (which are in `default`), and pods with their events and
    Jobs in the tenants' namespaces, and writes ConfigMaps in its own namespace.
    """
    yield obj("v1", "ServiceAccount", NAME, NAMESPACE, automountServiceAccountToken=False)
    nodes = f"ebbtide-costs-{declaration.name}"
    yield obj(f"{_RBAC}/v1", "ClusterRole", nodes, rules=[rbac_rule("", ["nodes"], ["list"])])
    yield binding("ClusterRole", nodes, None, [RECORDER])
    yield from granted("default", nodes, [rbac_rule("", ["events"], ["list"])], [RECORDER])
    writes = rbac_rule("", ["configmaps"], ["get", "list", "create", "patch"])
    yield from granted(NAMESPACE, NAME, [writes], [RECORDER])
    members = [subject for subject in readers(declaration) if subject["name"] != "system:serviceaccounts"]
    if members:
        yield from granted(NAMESPACE, "reader", [rbac_rule("", ["configmaps"], ["get", "list"])], members)
    yield obj("v1", "ConfigMap", NAME, NAMESPACE, data=_data(declaration))
    yield policy("no-ingress", NAMESPACE, [])
    yield _cron_job(declaration)


def _data(declaration: Cluster) -> dict[str, str]:
    """Return the program, its modules and its settings: the pools with their prices, and the teams by
    namespace."""
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
    package = files("ebbtide")
    modules = {name: package / "values" / name for name in _MODULES}
    sources = {_PROGRAM: package / "in_pods" / "cost_recorder.py", **modules}
    texts = {name: source.read_text(encoding="utf-8") for name, source in sources.items()}
    return {**texts, _SETTINGS: json.dumps(settings, indent=2)}


def _cron_job(declaration: Cluster) -> dict[str, Any]:
    placed, needs = system_placement(declaration), footprint("costs").requests
    requests = {"cpu": f"{int(needs.cpu_m)}m", "memory": f"{int(needs.memory_mib)}Mi"}
    container = {
        "name": NAME,
        "image": PINS["image-python"].version,
        "command": [
            "python3",
            f"{_FOLDER}/{_PROGRAM}",
            f"{_FOLDER}/{_SETTINGS}",
            f"--authority={_ACCOUNT}/ca.crt",
            f"--token={_ACCOUNT}/token",
        ],
        "resources": {"requests": requests, "limits": {"memory": requests["memory"]}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": NAME, "mountPath": _FOLDER, "readOnly": True}],
    }
    paths = {
        _PROGRAM: _PROGRAM,
        _SETTINGS: _SETTINGS,
        **{name: f"ebbtide/values/{name}" for name in _MODULES},
    }
    items = [{"key": key, "path": path} for key, path in paths.items()]
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
        "volumes": [{"name": NAME, "configMap": {"name": NAME, "items": items}}],
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
