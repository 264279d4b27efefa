"""The tenant's directory: people and groups that can have roles."""

from collections.abc import Iterable
from typing import Final

from ebbtide_rehearsal.cloud.store import Resource, Store

DIRECTORY: Final = "entra"
"""In the store, the cloud of people and groups, who are there before a stack and after it."""
_PERSON: Final = "rehearsal:person"


def know(store: Store, people: Iterable[str]) -> None:
    """Have people and groups in the directory, by their object ids."""
    for person in people:
        store.put(Resource(DIRECTORY, person, _PERSON))


def knows(store: Store, principal: str) -> bool:
    """Report if an object id is a person's or a group's."""
    return store.get(DIRECTORY, principal) is not None
