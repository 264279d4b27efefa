"""Injected failures of API calls."""

from dataclasses import dataclass

from ebbtide_rehearsal.cloud.faults import API_ERROR, SLOW
from ebbtide_rehearsal.cloud.store import Store


@dataclass(frozen=True, slots=True)
class ApiFailure:
    """Effect of injected failures on a call.

    Attributes:
        seconds: delay, wall-clock seconds.
        message: error message; None if the call continues.
    """

    seconds: float = 0
    message: str | None = None


def failure(store: Store, operation: str, type_: str, name: str) -> ApiFailure:
    """Apply the failures that are injected for a call.

    Args:
        store: the fake cloud's store.
        operation: `create`, `read`, `update` or `delete`.
        type_: type token.
        name: name of the resource.
    """
    targets = (f"{operation} {type_}", f"{operation} {type_} {name}")
    slow = store.strike(SLOW, *targets)
    error = store.strike(API_ERROR, *targets)
    if error is not None:
        store.log_event("api-error", f"The API fails to {operation} {name}.", call=targets[1])
    return ApiFailure(
        seconds=float(slow.details["seconds"]) if slow is not None else 0,
        message=str(error.details["message"]) if error is not None else None,
    )
