"""Katib's objects as they are wanted: patches over what its kustomization makes, all pure."""

from collections.abc import Mapping
from typing import Any, Final

import yaml

from ebbtide.model import Katib

from .home import Home
from .moving import moved
from .network_policies import labeled, namespaces, own_namespace, policy, ports
from .objects import Object, Patch, each_container, is_, updated
from .patches import (
    CONTROL_PLANE_PORT,
    at_home,
    filled_in_the_cluster,
    holding,
    labelled_namespaces,
    movable,
    unawaited_claims,
    webhook_ports,
    with_requests,
)
from .pod_security import pod_security

NAMESPACE: Final = Katib.spec.namespace

_UPSTREAM = "kubeflow"
DATABASE_SECRET = "katib-mysql-secrets"  # noqa: S105 - a Secret's name
_CERTIFICATE = "katib-webhook-cert"
"""The Secret that Katib's controller fills (0.19.0, pkg/certgenerator/v1beta1)."""
CONFIG = "katib-config"

(INJECTED,) = Katib.spec.namespace_labels

_COMPONENT: Final = "katib.kubeflow.org/component"
_METRICS: Final = 8080
_API: Final = 6789
"""Ports of metrics and of the database's manager (Katib 0.19.0)."""

_REQUESTS = {"cpu": "20m", "memory": "128Mi"}
_DATABASE = {"katib-mysql": {"cpu": "100m", "memory": "512Mi"}}
"""Upstream names none at all (0.19.0): estimates, the database's by what MySQL 8 takes when it is idle."""


def _configured(manifest: Object) -> Object:
    """Configure the controller: webhooks on a port that the control plane of a private cluster reaches, and
    the trial's own security context for the metrics collector."""
    if not is_(manifest, "ConfigMap", CONFIG):
        return manifest
    key = "katib-config.yaml"
    config: Object = yaml.safe_load(manifest["data"][key])
    wanted = updated(config, ("init", "controller", "webhookPort"), CONTROL_PLANE_PORT)
    wanted = updated(wanted, ("init", "controller", "injectSecurityContext"), value=True)
    return updated(manifest, ("data",), {**manifest["data"], key: yaml.safe_dump(wanted, sort_keys=False)})


def _only_with_password(manifest: Object) -> Object:
    """Remove the empty root password that upstream's database allows."""

    def strict(container: Object) -> Object:
        if "env" not in container:
            return container
        variables = [item for item in container["env"] if item["name"] != "MYSQL_ALLOW_EMPTY_PASSWORD"]
        return {**container, "env": variables}

    return each_container(manifest, strict) if is_(manifest, "Deployment", "katib-mysql") else manifest


def patches(home: Home, credentials: Mapping[str, Mapping[str, Any]]) -> tuple[Patch, ...]:
    """Patches over all of Katib.

    Args:
        home: where its controller, its database and its interface run. What suggests the next trial runs in
            the experiment's namespace and has no tolerations: it finds the system pool because that has no
            taint.
        credentials: for each Secret all that it holds, in base64, in place of what upstream publishes.
    """
    return (
        # With the label, an experiment in its own namespace would end with the controller that lets it go.
        moved(_UPSTREAM, NAMESPACE, (INJECTED,)),
        labelled_namespaces(pod_security("restricted")),
        at_home(home),
        with_requests(_REQUESTS, _DATABASE),
        movable,
        _configured,
        webhook_ports(),
        filled_in_the_cluster(_CERTIFICATE),
        unawaited_claims,
        *(holding(name, data) for name, data in credentials.items()),
        _only_with_password,
    )


def network_policies() -> tuple[Object, ...]:
    """Return the policies of its namespace. Trials report to the database's manager, and reach neither the
    database nor the interface, which asks for no password."""
    reports = {"from": [namespaces(Katib.spec.namespace_labels)], **ports(_API)}
    controller, manager = (labeled(_COMPONENT, name) for name in ("controller", "db-manager"))
    return (
        own_namespace(NAMESPACE),
        policy("controller", NAMESPACE, [ports(CONTROL_PLANE_PORT, _METRICS)], controller),
        policy("db-manager", NAMESPACE, [reports], manager),
    )
