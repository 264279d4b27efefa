"""The tenant's directory: users and groups that can have roles."""

from collections.abc import Iterable
from typing import Final

from ebbtide_rehearsal.cloud.store import Resource, Store

DIRECTORY: Final = "entra"
"""Cloud of users and groups in the store; they exist independently of stacks."""
_PERSON: Final = "rehearsal:person"


def know(store: Store, people: Iterable[str]) -> None:
    """Add users and groups to the directory, by their object ids."""
    for person in people:
        store.put(Resource(DIRECTORY, person, _PERSON))


def knows(store: Store, principal: str) -> bool:
    """Return whether an object id belongs to a user or a group."""
    return store.get(DIRECTORY, principal) is not None
