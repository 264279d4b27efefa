"""An existing installation of Kubeflow Pipelines, as far as a stack patches it."""

import json
import time
from pathlib import Path
from typing import Any, Final

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.catalog import PINS
from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE
from ebbtide_rehearsal.cloud.clusters import BEHIND
from ebbtide_rehearsal.cloud.store import Store

NAME: Final = "ml-pipeline"
SPEC_PATCH: Final = "COMPILED_PIPELINE_SPEC_PATCH"
_TIMEOUT_SECONDS: Final = 60
_POLL_SECONDS: Final = 0.2
_LABELS: Final = {"app": NAME}


def seed_pipelines(store: Store, cluster: str) -> None:
    """Create the namespace and the API server's Deployment, as kubectl applies them from the released
    manifests.

    Source: kubeflow/pipelines 2.17.0, manifests/kustomize/base/pipeline/ml-pipeline-apiserver-deployment.yaml
    (2026-07), with only the variable that patches compiled workflows.

    Args:
        store: the fake cloud's store.
        cluster: id of the cluster.

    Raises:
        LookupError: the cluster has no control plane.
        TimeoutError: its controllers do not respond.
    """
    running = store.get(BEHIND, cluster)
    if running is None:
        raise LookupError(cluster)
    kubeconfig = json.loads(Path(running.state["kubeconfig"]).read_text(encoding="utf-8"))
    api = Api.of_kubeconfig(kubeconfig)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PIPELINES_NAMESPACE}}
    query = {"fieldManager": "kubectl-client-side-apply"}
    api.create("/api/v1/namespaces", namespace, **query)
    _settled(api)
    api.create(f"/apis/apps/v1/namespaces/{PIPELINES_NAMESPACE}/deployments", deployment(), **query)
    api.close()


def _settled(api: Api) -> None:
    """Wait for the objects that Kubernetes creates in every namespace, so that none is taken for the stack's.

    Raises:
        TimeoutError: they are not created.
    """
    inside = f"/api/v1/namespaces/{PIPELINES_NAMESPACE}"
    own = (f"{inside}/serviceaccounts/default", f"{inside}/configmaps/kube-root-ca.crt")
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not all(api.find(path) for path in own):
        if time.monotonic() > deadline:
            raise TimeoutError(f"Kubernetes did not create {' and '.join(own)}.")
        time.sleep(_POLL_SECONDS)


def deployment() -> dict[str, Any]:
    """Return the Deployment."""
    container = {
        "name": "ml-pipeline-api-server",
        "image": f"ghcr.io/kubeflow/kfp-api-server:{PINS['pipelines'].version}",
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": SPEC_PATCH, "value": "{}"},
        ],
        "resources": {"requests": {"cpu": "250m", "memory": "500Mi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": PIPELINES_NAMESPACE, "labels": _LABELS},
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": {"containers": [container]}},
        },
    }
