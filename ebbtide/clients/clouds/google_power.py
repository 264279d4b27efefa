"""Google Cloud: scale the node pools of a GKE cluster to zero and back. GKE cannot stop a cluster, and bills
its control plane at zero nodes.

The autoscaler is disabled first, since it runs in the control plane and would add nodes for pending pods. GKE
makes one change of a cluster at a time.

Source: Kubernetes Engine API v1, `projects.locations.clusters.nodePools` (`setAutoscaling`, `setSize`) and
`projects.locations.operations` (Google's REST reference, 2026).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from google.auth.transport.requests import AuthorizedSession

from ebbtide.clients.clouds.errors import CloudApiError
from ebbtide.clients.clouds.google import GoogleEndpoints
from ebbtide.clients.clouds.http import get_json, post_json
from ebbtide.clients.clouds.node_pools import NodePoolSize

_STEP: Final = 5.0  # seconds between two requests for an operation's state
_TIMEOUT: Final = 3600.0  # seconds; nodes are drained for up to an hour (GKE docs, resize a cluster, 2026)


@dataclass(frozen=True, slots=True)
class GooglePower:
    """Node pools of a GKE cluster.

    Attributes:
        cluster: `projects/*/locations/*/clusters/*`.
        pools: their sizes when the cluster runs, those of the system first.
    """

    cluster: str
    pools: Sequence[NodePoolSize]
    session: AuthorizedSession
    endpoints: GoogleEndpoints = field(default_factory=GoogleEndpoints.configured)

    def refusal(self) -> str:
        """Return the reason why the cluster can never be stopped; empty if it can."""
        if _part(self._get(self.cluster), "autopilot").get("enabled"):
            return "It is an Autopilot cluster, whose nodes GKE manages."
        return ""

    def is_stopped(self) -> bool:
        """Return whether every pool has zero nodes and no autoscaling."""
        return all(_is_stopped(self._pool(pool)) for pool in self.pools)

    def stop(self, on_step: Callable[[str], None]) -> None:
        """Scale the pools to zero, those of the system last, so that the components that drain nodes run."""
        for pool in reversed(self.pools):
            state = self._pool(pool)
            if _is_stopped(state):
                continue
            on_step(f"node pool {pool.name} to zero")
            if _is_autoscaled(state):
                self._change(pool, "setAutoscaling", {"autoscaling": {"enabled": False}})
            self._change(pool, "setSize", {"nodeCount": 0})

    def start(self, on_step: Callable[[str], None]) -> None:
        """Scale the pools back to their sizes, those of the system first."""
        for pool in self.pools:
            state = self._pool(pool)
            if _is_autoscaled(state) if pool.autoscaling else state.get("initialNodeCount") == pool.count:
                continue
            on_step(f"node pool {pool.name} to {pool.count}" + (", autoscaled" if pool.autoscaling else ""))
            if pool.count:
                self._change(pool, "setSize", {"nodeCount": pool.count})
            # Last, since it marks the pool as started.
            if pool.autoscaling:
                self._change(pool, "setAutoscaling", {"autoscaling": {"enabled": True, **pool.autoscaling}})

    def _get(self, path: str) -> dict[str, Any]:
        return get_json(self.session, f"{self.endpoints.container}/{path}", {}, self._advice())

    def _pool(self, pool: NodePoolSize) -> dict[str, Any]:
        return self._get(f"{self.cluster}/nodePools/{pool.name}")

    def _change(self, pool: NodePoolSize, method: str, body: Mapping[str, Any]) -> None:
        """Change a node pool and wait for the operation."""
        url = f"{self.endpoints.container}/{self.cluster}/nodePools/{pool.name}:{method}"
        operation = post_json(self.session, url, body, self._advice())
        location = self.cluster.rpartition("/clusters/")[0]
        end = time.monotonic() + _TIMEOUT
        while operation.get("status") != "DONE":
            if time.monotonic() > end:
                raise CloudApiError(
                    f"GKE's operation {operation['name']} is not done after an hour. Run this again to "
                    "continue."
                )
            time.sleep(_STEP)
            operation = self._get(f"{location}/operations/{operation['name']}")
        if problem := _part(operation, "error").get("message"):
            raise CloudApiError(f"GKE failed to change node pool {pool.name}: {problem}")

    def _advice(self) -> dict[int, str]:
        return {
            400: "Another operation may be in progress; run this again when it is done.",
            403: "Ask an owner of the project for roles/container.clusterAdmin.",
            404: "Check with `pulumi refresh` that the cluster and its node pools exist.",
        }


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return document.get(name) or {}


def _is_autoscaled(pool: Mapping[str, Any]) -> bool:
    return bool(_part(pool, "autoscaling").get("enabled"))


def _is_stopped(pool: Mapping[str, Any]) -> bool:
    """Return whether a pool has zero nodes and no autoscaling. Its `initialNodeCount` follows a resize
    (hashicorp/terraform-provider-google#6901)."""
    return not _is_autoscaled(pool) and not pool.get("initialNodeCount")
