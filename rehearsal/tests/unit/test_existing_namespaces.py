"""Namespaces of an existing cluster that a declaration names."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.declaration.model.declare import declare
from ebbtide_rehearsal.cloud.existing import seed_namespaces
from ebbtide_rehearsal.cloud.provider import BEHIND, CLUSTER
from ebbtide_rehearsal.cloud.store import Resource, Store
from tests.declarations import GKE, Declaration, changed


class _Server:
    """An API server that has the namespace `default`."""

    def __init__(self) -> None:
        self.objects = [("/api/v1/namespaces", "default")]

    def create(self, path: str, body: dict[str, Any], **_: str) -> None:
        """Create an object."""
        created = (path, body["metadata"]["name"])
        if created in self.objects:
            raise ApiError(409, "it exists", reason="AlreadyExists")
        self.objects.append(created)

    def close(self) -> None:
        """Do nothing."""


def _seeded(directory: Path, **fields: Any) -> list[tuple[str, str]]:
    declaration: Declaration = changed(GKE, **fields)
    store, server = Store(directory / "store"), _Server()
    (directory / "kubeconfig").write_text(json.dumps({}))
    store.put(Resource(BEHIND, "c", CLUSTER, state={"kubeconfig": str(directory / "kubeconfig")}))
    with patch.object(Api, "of_kubeconfig", return_value=server):
        seed_namespaces(declare(declaration), store, "c")
    return server.objects[1:]


def _team(namespace: str, *, create: bool = False) -> Declaration:
    return {"name": f"of-{namespace}", "namespace": {"name": namespace, "create": create}}


@pytest.mark.parametrize(
    ("fields", "objects"),
    [
        ({}, []),
        ({"teams": [_team("default"), _team("new", create=True), {"name": "vision"}]}, []),
        ({"teams": [_team("theirs")]}, [("/api/v1/namespaces", "theirs")]),
        (
            {"teams": [_team("kubeflow")]},
            [
                ("/api/v1/namespaces", "kubeflow"),
                ("/api/v1/namespaces/kubeflow/serviceaccounts", "pipeline-runner"),
            ],
        ),
        ({"teams": [_team("kubeflow")], "addons": {"pipelines": {}}}, []),
    ],
)
def test_what_the_stack_does_not_make_exists(
    fields: Declaration, objects: list[tuple[str, str]], tmp_path: Path
) -> None:
    """Namespaces that teams use and do not create, and the account of steps where Kubeflow Pipelines is."""
    assert _seeded(tmp_path, **fields) == objects
