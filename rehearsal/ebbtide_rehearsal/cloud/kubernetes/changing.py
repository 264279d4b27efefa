"""Changing an object that is there, and giving fields of one back.

Source: pulumi-kubernetes 4.32, provider/pkg/await/await.go (`Update`) and provider/pkg/ssa/actions.go.
"""

from dataclasses import dataclass

from ebbtide.kubernetes_api import APPLY, JSON_PATCH
from ebbtide_rehearsal.cloud.kubernetes.cluster import Cluster
from ebbtide_rehearsal.cloud.kubernetes.making import STRICT, applied, dry
from ebbtide_rehearsal.cloud.kubernetes.managers import forced, taken_over, without_ignored
from ebbtide_rehearsal.cloud.kubernetes.objects import (
    Object,
    metadata,
    name_of,
    namespace_of,
    with_metadata,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked of an object that is there.

    Attributes:
        inputs: the object as it is wanted.
        manager: who owns its fields.
        patch: whether only those fields, of an object that others made.
        always_force: whether fields that others own are taken from them.
        ignored: paths of what the program leaves as it is.
    """

    inputs: Object
    manager: str
    patch: bool
    always_force: bool
    ignored: tuple[str, ...]


def changed(cluster: Cluster, wish: Wish, *, preview: bool) -> Object:
    """Make an object as it is wanted, as far as it is the manager's.

    The definition of a kind is put in the place of the old one. Before the first change of anything else
    that was made here, what it was made with goes over to the manager, so that what is no longer wanted is
    removed.

    Raises:
        ApiError: refused, or there is no such object.
        UnknownKindError: nothing defines its kind any more.
    """
    _, wanted = cluster.placed(wish.inputs)
    path = cluster.path(wanted)
    live = cluster.api.get(path)
    if wanted["kind"] == "CustomResourceDefinition":
        query = {"fieldManager": wish.manager, **STRICT, **dry(preview)}
        version = metadata(live)["resourceVersion"]
        return cluster.api.put(path, with_metadata(wanted, resourceVersion=version), **query)
    if not preview and not wish.patch:
        takeover = taken_over(live, wish.manager)
        live = cluster.api.patch(path, takeover, JSON_PATCH) if takeover else live
    wanted = without_ignored(wanted, live, wish.manager, wish.ignored)
    force = forced(wanted, live, always=wish.always_force, preview=preview)
    return applied(cluster, wanted, wish.manager, force=force, preview=preview)


def relinquished(cluster: Cluster, live: Object, manager: str) -> Object:
    """Give back every field that a manager owns: what nobody else owns goes back to its default.

    Raises:
        ApiError: refused, such as for a field that an object has to have and nobody else owns.
        UnknownKindError: nothing defines its kind any more.
    """
    bare = {"apiVersion": live["apiVersion"], "kind": live["kind"]}
    about = {"name": name_of(live), "namespace": namespace_of(live) or None}
    return cluster.api.patch(cluster.path(live), with_metadata(bare, **about), APPLY, fieldManager=manager)
