"""State of the fake cloud: its clock, resources, injected faults and the event log, in one file on disk.

The file is a SQLite database, since the cloud's process and the rehearsal's process access it concurrently,
and it must outlive both. Time may run faster than the wall clock if no real component depends on it.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Self

NO_STOCK: Final = "no-stock"
"""The cloud has no machines for a node pool, so requested nodes do not start. Target: the pool, or a zone of
the pool, as `pool/zone`."""
QUOTA: Final = "quota"
"""A quota is exceeded: requests that need it are rejected with the cloud's message. Target: the cloud's name
of the quota. Details: `limit`."""
RECLAIM: Final = "reclaim"
"""The cloud reclaims nodes. Target: the pool. Details: `share` of its nodes from 0 to 1 or their `count`, and
`graceful`, whether the kubelet gets notice. Applied once for all pools that match."""
API_ERROR: Final = "api-error"
"""A call of a cloud's API fails. Target: the operation and the type, such as
`create gcp:container/nodePool:NodePool`. Details: `message`."""
SLOW: Final = "slow"
"""A call of a cloud's API is delayed. Target: as for an API error. Details: `seconds`, wall clock."""
_SCHEMA = """
create table if not exists clock (started real not null, speed real not null);
create table if not exists resources (
    cloud text not null, id text not null, type text not null, urn text not null, inputs text not null,
    state text not null, primary key (cloud, id));
create table if not exists faults (
    number integer primary key, kind text not null, target text not null, times integer,
    details text not null);
create table if not exists events (
    number integer primary key, at real not null, kind text not null, text text not null,
    facts text not null);
"""


@dataclass(frozen=True, slots=True)
class Clock:
    """Simulated time of a rehearsal. The cloud's durations (starting a node, waiting before a removal) and
    its bill use it; Kubernetes and Kueue use the wall clock.

    Attributes:
        started: wall-clock time of the start, seconds since the epoch.
        speed: simulated seconds per second.
        wall: source of the wall-clock time.
    """

    started: float
    speed: float = 1.0
    wall: Callable[[], float] = field(default=time.time, compare=False)

    def now(self) -> float:
        """Return simulated seconds since the start."""
        return (self.wall() - self.started) * self.speed


@dataclass(slots=True)
class ClusterTime:
    """Time of the cluster in a scenario: simulated while the scenario waits for the cluster, this machine's
    while a step works, such as `pulumi up`. Otherwise a step of a minute would be an hour at the usual speed.

    Attributes:
        speed: simulated seconds per second.
        work: start and end of each step that works, simulated seconds.
    """

    speed: float
    work: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def at(self, simulated: float) -> float:
        """Return the cluster's time at a simulated time, seconds since the start."""
        working = sum(max(0.0, min(simulated, end) - start) for start, end in self.work)
        return simulated - working * (1 - 1 / self.speed)


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """An injected fault.

    Attributes:
        kind: one of the kinds above.
        target: pattern of targets; `*` matches any characters, `?` a single one.
        times: number of times that it strikes; None until it is lifted.
        details: parameters of the kind, JSON.
    """

    kind: str
    target: str = "*"
    times: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def matches(self, target: str) -> bool:
        """Return whether the fault's pattern matches a target."""
        return fnmatchcase(target, self.target)


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the fake cloud.

    Attributes:
        cloud: package of the provider, such as `gcp`, or `nodes` for machines and node pools.
        id: provider id, unique in its cloud.
        type: type token, such as `gcp:container/nodePool:NodePool`.
        urn: URN; empty if the engine does not know it.
    """

    cloud: str
    id: str
    type: str
    urn: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def having(self, **state: object) -> Self:
        """Return the resource with some of its state changed."""
        return replace(self, state={**self.state, **state})


@dataclass(frozen=True, slots=True)
class Event:
    """An event in the log.

    Attributes:
        number: sequence number.
        at: simulated seconds since the start.
        kind: event kind, such as `node-added`.
        text: sentence for users, without the time.
        facts: data for programs, JSON.
    """

    number: int
    at: float
    kind: str
    text: str
    facts: Mapping[str, Any]


class _Connection(sqlite3.Connection):
    """A thread's connection, which is closed at the end of the thread or the store."""

    def __del__(self) -> None:
        self.close()


class Store:
    """State of the fake cloud. Every method may be called from any thread of any process."""

    def __init__(self, path: Path, *, speed: float = 1.0) -> None:
        """Open the store, or create it.

        Args:
            speed: simulated seconds per second, for a new store.
        """
        self._path = path
        self._threads = threading.local()
        with self._writing() as connection:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            row = connection.execute("select started, speed from clock").fetchone()
            if row is None:
                row = (Clock(0).wall(), speed)
                connection.execute("insert into clock values (?, ?)", row)
        started, speed = row
        self.clock = Clock(started, speed)

    def put(self, resource: Resource) -> None:
        """Write a resource, replacing an existing one with its id."""
        row = (
            resource.cloud,
            resource.id,
            resource.type,
            resource.urn,
            json.dumps(resource.inputs),
            json.dumps(resource.state),
        )
        with self._writing() as connection:
            connection.execute("insert or replace into resources values (?, ?, ?, ?, ?, ?)", row)

    def get(self, cloud: str, identity: str) -> Resource | None:
        """Return a resource by its id; None if it does not exist."""
        rows = self._read("select * from resources where cloud = ? and id = ?", cloud, identity)
        return _resource(rows[0]) if rows else None

    def remove(self, cloud: str, identity: str) -> bool:
        """Remove a resource; return whether it existed."""
        with self._writing() as connection:
            query = "delete from resources where cloud = ? and id = ?"
            return connection.execute(query, (cloud, identity)).rowcount > 0

    def resources(self, cloud: str | None = None, kind: str | None = None) -> list[Resource]:
        """Return all resources, optionally of a cloud or a type, ordered by id."""
        query = (
            "select * from resources where (?1 is null or cloud = ?1) and (?2 is null or type = ?2) "
            "order by cloud, id"
        )
        return [_resource(row) for row in self._read(query, cloud, kind)]

    def inject(self, fault: InjectedFault) -> int:
        """Inject a fault; return its number for `lift`."""
        row = (fault.kind, fault.target, fault.times, json.dumps(fault.details))
        with self._writing() as connection:
            connection.execute("insert into faults (kind, target, times, details) values (?, ?, ?, ?)", row)
            (number,) = connection.execute("select last_insert_rowid()").fetchone()
        return number

    def remove_fault(self, number: int) -> None:
        """Remove an injected fault."""
        with self._writing() as connection:
            connection.execute("delete from faults where number = ?", (number,))

    def faults(self, kind: str) -> dict[int, InjectedFault]:
        """Return the active faults of a kind, by number."""
        return dict(map(_fault, self._read("select * from faults where kind = ? order by number", kind)))

    def strike(self, kind: str, *targets: str) -> InjectedFault | None:
        """Return the first active fault of a kind that matches one of these targets, and count the strike: a
        fault with a limited number of strikes ends after the last. None if none matches."""
        with self._writing() as connection:
            for number, fault in self.faults(kind).items():
                if not any(fault.matches(target) for target in targets):
                    continue
                if fault.times == 1:
                    connection.execute("delete from faults where number = ?", (number,))
                elif fault.times is not None:
                    connection.execute("update faults set times = times - 1 where number = ?", (number,))
                return fault
        return None

    def log_event(self, kind: str, text: str, **facts: object) -> None:
        """Log an event at the current time."""
        row = (self.clock.now(), kind, text, json.dumps(facts))
        with self._writing() as connection:
            connection.execute("insert into events (at, kind, text, facts) values (?, ?, ?, ?)", row)

    def events(self, kind: str | None = None) -> list[Event]:
        """Return the events, oldest first, optionally of a kind."""
        rows = self._read("select * from events where ?1 is null or kind = ?1 order by number", kind)
        return [Event(number, at, kind, text, json.loads(facts)) for number, at, kind, text, facts in rows]

    def _read(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection().execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """Yield the thread's connection in a transaction that locks the file until the end of the block."""
        connection = self._connection()
        connection.execute("begin immediate")
        try:
            yield connection
        except BaseException:
            connection.execute("rollback")
            raise
        connection.execute("commit")

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._threads, "connection", None)
        if connection is None:
            # The last reference may be dropped in another thread.
            connection = sqlite3.connect(
                self._path, timeout=60, isolation_level=None, check_same_thread=False, factory=_Connection
            )
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = off")
            self._threads.connection = connection
        return connection


def _resource(row: tuple[Any, ...]) -> Resource:
    cloud, identity, kind, urn, inputs, state = row
    return Resource(cloud, identity, kind, urn, json.loads(inputs), json.loads(state))


def _fault(row: tuple[Any, ...]) -> tuple[int, InjectedFault]:
    number, kind, target, times, details = row
    return number, InjectedFault(kind, target, times, json.loads(details))


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
        operation: `create`, `read`, `update` or `delete`.
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
