"""Future reservations in calendar mode: requests, approved at once, and the period of their machines.

Source: Compute Engine docs, future-reservations-calendar-mode-overview and
create-future-reservations-calendar-mode (2026): a submitted request cannot be changed, cancelled or deleted.
"""

from typing import Final

from ebbtide.analysis.reading.gke import read_period
from ebbtide_rehearsal.cloud.gcp.request import (
    BAD_REQUEST,
    FUTURE_RESERVATION,
    GoogleCloud,
    Request,
    ResourceKind,
    Rule,
    already_exists,
    api_error,
    inputs_of,
    outputs_of,
)
from ebbtide_rehearsal.cloud.store import Resource

_SOURCE: Final = "Compute Engine docs, future-reservations-calendar-mode-overview (2026)"


def period_of(cloud: GoogleCloud, name: str) -> tuple[float, float] | None:
    """Return begin and end of a requested reservation, in simulated seconds; None for another one."""
    for resource in cloud.of(FUTURE_RESERVATION):
        own, period = read_period(inputs_of(resource))
        if own == name:
            begin, end = (time.timestamp() - cloud.store.clock.started for time in period)
            return begin, end
    return None


def _submitted(request: Request) -> str | None:
    if request.old is None:
        return None
    message = f"The future reservation {request.name} is submitted and cannot be updated in calendar mode."
    return api_error(400, message, BAD_REQUEST)


def _before_its_end(cloud: GoogleCloud, reservation: Resource) -> str | None:
    _, (_, end) = read_period(inputs_of(reservation))
    if cloud.store.clock.started + cloud.store.clock.now() >= end.timestamp():
        return None
    message = f"The future reservation {reservation.id} cannot be deleted before its end in calendar mode."
    return f"Error when reading or editing FutureReservation: {api_error(400, message, BAD_REQUEST)}"


KINDS: Final = (
    ResourceKind(
        type=FUTURE_RESERVATION,
        outputs=outputs_of,
        autonamed="name",
        rules=(Rule("submitted request", _SOURCE, _submitted),),
        failing="Error creating FutureReservation",
        already_exists=already_exists("FutureReservation"),
        before_delete=_before_its_end,
    ),
)
