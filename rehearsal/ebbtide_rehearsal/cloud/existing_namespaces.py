"""Existing namespaces of a cluster, with the objects that teams use in them."""

import http
import json
from pathlib import Path
from typing import Any

from ebbtide.kubernetes_api import Api, ApiError
from ebbtide.model import Cluster
from ebbtide.model.tenants import PIPELINES_NAMESPACE, local_queue_tenants
from ebbtide_rehearsal.cloud.clusters import BEHIND
from ebbtide_rehearsal.cloud.store import Store


def seed_namespaces(declaration: Cluster, store: Store, cluster: str) -> None:
    """Create the namespaces that teams and local queues use but the stack does not create. That of Kubeflow
    Pipelines has the service account of the steps (kubeflow/pipelines 2.17.0,
    manifests/kustomize/base/pipeline/pipeline-runner-sa.yaml).

    Args:
        declaration: the declaration.
        store: the fake cloud's store.
        cluster: id of the cluster.

    Raises:
        LookupError: the cluster has no control plane.
        ApiError: its API server rejects a request.
    """
    names = [
        team.namespace_name
        for team in (*declaration.teams, *local_queue_tenants(declaration))
        if not team.creates_namespace
    ]
    if declaration.addons.installed_pipelines is not None:
        names = [name for name in names if name != PIPELINES_NAMESPACE]
    if not names:
        return
    running = store.get(BEHIND, cluster)
    if running is None:
        raise LookupError(cluster)
    api = Api.of_kubeconfig(json.loads(Path(running.state["kubeconfig"]).read_text(encoding="utf-8")))
    for name in names:
        _create(api, "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": name}})
        if name == PIPELINES_NAMESPACE:
            account = {"kind": "ServiceAccount", "metadata": {"name": "pipeline-runner", "namespace": name}}
            _create(api, f"/api/v1/namespaces/{name}/serviceaccounts", account)
    api.close()


def _create(api: Api, path: str, manifest: dict[str, Any]) -> None:
    """Create an object, unless it exists, such as the namespace `default`."""
    try:
        api.create(path, {"apiVersion": "v1", **manifest}, fieldManager="kubectl-client-side-apply")
    except ApiError as error:
        if error.status != http.HTTPStatus.CONFLICT:
            raise
