"""Errors of a cluster that rejects workloads or does not respond."""

import http
from typing import Final

from ebbtide.clients.kubernetes import ApiError
from ebbtide.work.errors import WorkloadError

_KUBECTL: Final = "check that `kubectl get namespaces` works"


class ClusterError(WorkloadError):
    """The cluster is unreachable, or rejects the request; the message contains the correction."""


def explained(error: ApiError) -> str:
    """Return the API server's error in terms of the submitted workload."""
    match error.status:
        case 0:
            return f"{error}: {_KUBECTL} from this machine."
        case http.HTTPStatus.UNAUTHORIZED:
            return (
                "The API server rejects your credentials: log in to the cloud again, or get new credentials "
                f"for the cluster, and {_KUBECTL}."
            )
        case status if error.unanswered:
            return f"The API server could not answer (status {status}): {error}"
        case _:
            return f"The API server refused: {error}"
