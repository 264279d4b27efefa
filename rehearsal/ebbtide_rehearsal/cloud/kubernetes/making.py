"""Making an object.

Source: pulumi-kubernetes 4.32, provider/pkg/await/await.go, `Creation`: an object is created, so that one
that is there already is refused; a patch, and everything where the provider is told to, is applied.
"""

import time
from collections.abc import Callable
from typing import Final

from ebbtide.kubernetes_api import APPLY, ApiError
from ebbtide_rehearsal.cloud.kubernetes.cluster import Cluster
from ebbtide_rehearsal.cloud.kubernetes.discovery import UnknownKindError
from ebbtide_rehearsal.cloud.kubernetes.managers import MAKER
from ebbtide_rehearsal.cloud.kubernetes.objects import Object, name_of, namespace_of

STRICT: Final = {"fieldValidation": "Strict"}
"""A field that the API does not know is an error. Pulumi's provider lets the server warn, and nobody sees
it."""

_EXISTS: Final = """

The resource already exists in the cluster. Where it is another resource of the program renamed, give that \
an alias; where it was made by hand, import it, or own only some of its fields with a Patch resource; \
`upsertExistingObjects` on the provider lets it be taken over."""


def dry(preview: bool) -> dict[str, str]:  # noqa: FBT001 - a preview is what it is of
    """Query that makes a call change nothing."""
    return {"dryRun": "All"} if preview else {}


def created(cluster: Cluster, manifest: Object, *, preview: bool) -> Object:
    """Create an object; tried again where its kind or its namespace is not there yet.

    Raises:
        ApiError: refused.
        UnknownKindError: nothing defines its kind.
    """
    query = {"fieldManager": MAKER, **STRICT, **dry(preview)}

    def attempt() -> Object:
        endpoint, placed = cluster.placed(manifest)
        return cluster.api.create(endpoint.path(namespace_of(placed)), placed, **query)

    return _again(cluster, attempt, preview=preview)


def applied(
    cluster: Cluster, manifest: Object, manager: str, *, force: bool, preview: bool = False
) -> Object:
    """Apply an object's fields as a manager's; tried again where its kind or its namespace is not there yet.

    Raises:
        ApiError: refused.
        UnknownKindError: nothing defines its kind.
    """
    query = {"fieldManager": manager, "force": str(force).lower(), **STRICT, **dry(preview)}

    def attempt() -> Object:
        endpoint, placed = cluster.placed(manifest)
        path = endpoint.path(namespace_of(placed), name_of(placed))
        return cluster.api.patch(path, placed, APPLY, **query)

    return _again(cluster, attempt, preview=preview)


def explained(error: ApiError, manager: str) -> str:
    """What is shown of a refusal to make or change an object."""
    if error.already_exists:
        return f"{error}{_EXISTS}"
    if error.conflict:
        return (
            "server-side apply field conflict detected, see https://www.pulumi.com/registry/packages/kubernetes/"
            "how-to-guides/managing-resources-with-server-side-apply/#handle-field-conflicts-on-existing-resources"
            f' for troubleshooting help\nThe resource managed by field manager "{manager}" had an apply '
            f"conflict: {error}"
        )
    return str(error)


def _again(cluster: Cluster, attempt: Callable[[], Object], *, preview: bool) -> Object:
    wait = cluster.patience.retry
    for _ in range(0 if preview else cluster.patience.retries):
        try:
            return attempt()
        except UnknownKindError:
            pass
        except ApiError as error:
            if not error.not_found:
                raise
            cluster.discovery.refresh()  # a definition that was replaced
        time.sleep(wait)
        wait *= 2
    return attempt()
