"""Kueue in virtual time: its unmodified scheduler, queues and reconciler in one process (0.19.2).

Time and the heap of events are in that process (`tools/modules/kueue-replay`); it reports each decision and
reads what follows from it. Equal input gives equal events.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Literal, Self, TypeAlias, cast

from ebbtide_rehearsal.failures import RehearsalError

PROGRAM: Final = "kueue-replay"
"""Its name among the tools."""

ORDER: Final = (
    "ResourceFlavor",
    "ProvisioningRequestConfig",
    "AdmissionCheck",
    "Cohort",
    "ClusterQueue",
    "LocalQueue",
)
"""Kinds that it reads, each after those that it refers to."""

Flavors: TypeAlias = Mapping[str, Mapping[str, str]]
"""Names of ResourceFlavors by pod set and resource."""


class KueueError(RehearsalError):
    """The process has rejected its input or failed; the message is its own."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """Equal pods of a job.

    Attributes:
        name: its name.
        count: number of pods.
        requests: requests of each, as Kubernetes quantities.
        node_selector: node labels that they select.
        tolerations: their tolerations, as in a pod.
    """

    name: str
    count: int
    requests: Mapping[str, str]
    node_selector: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerations: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Submit:
    """Create a job at a time.

    Attributes:
        at: seconds from the start.
        job: its unique name.
        queue: its LocalQueue, as `namespace/name`.
        pod_sets: its pods.
        priority: value of its priority.
    """

    at: float
    job: str
    queue: str
    pod_sets: Sequence[PodSet]
    priority: int = 0


@dataclass(frozen=True, slots=True)
class PodsReady:
    """Set whether all pods of an admitted job are ready; void once the job is evicted.

    Attributes:
        at: seconds from the start.
        job: its name.
        ready: false once a pod has failed, such as with a reclaimed node, until it is replaced.
    """

    at: float
    job: str
    ready: bool = True


@dataclass(frozen=True, slots=True)
class Finish:
    """End a job; void once it is evicted.

    Attributes:
        at: seconds from the start.
        job: its name.
        succeeded: whether it has succeeded.
    """

    at: float
    job: str
    succeeded: bool = True


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict a job with quota, as for a failed node; it is requeued. Void once it is evicted.

    Attributes:
        at: seconds from the start.
        job: its name.
        reason: reason of the condition Evicted.
    """

    at: float
    job: str
    reason: str = "NodeFailures"


@dataclass(frozen=True, slots=True)
class Check:
    """Set an admission check of a job; void once it is evicted.

    Attributes:
        at: seconds from the start.
        job: its name.
        check: name of the AdmissionCheck.
        state: `Failed` is a failed ProvisioningRequest: Kueue retries it after the backoff of its
            ProvisioningRequestConfig, or rejects the job after the last attempt.
        after: seconds until a retry, for the state `Retry`.
    """

    at: float
    job: str
    check: str
    state: Literal["Ready", "Retry", "Rejected", "Failed"]
    after: int = 0


@dataclass(frozen=True, slots=True)
class Timer:
    """Report an event `timer` at a time.

    Attributes:
        at: seconds from the start.
        tag: the event's tag.
    """

    at: float
    tag: str


@dataclass(frozen=True, slots=True)
class Apply:
    """Create or change an object: a quota, a stop policy, a flavor.

    Attributes:
        at: seconds from the start.
        manifest: the object, of a kind in `ORDER`.
    """

    at: float
    manifest: Mapping[str, Any]


Action: TypeAlias = Submit | PodsReady | Finish | Evict | Check | Timer | Apply


@dataclass(frozen=True, slots=True)
class _Run:
    until: float | None
    before: float | None


@cache
def _fields(kind: type[object]) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind)) if is_dataclass(kind) else ()


def _plain(value: Any) -> dict[str, Any]:
    """Convert an action or its parts for JSON."""
    if names := _fields(cast("type[object]", type(value))):
        return {"do": type(value).__name__.lstrip("_"), **{name: getattr(value, name) for name in names}}
    return dict(cast("Mapping[str, Any]", value))


_encoded: Final = json.JSONEncoder(default=_plain).encode


@dataclass(frozen=True, slots=True)
class Event:
    """A decision of Kueue, or what happened.

    Attributes:
        kind: `reserved`: the job has quota; `check`: an admission check is due; `admitted`: its pods are
            created; `evicted`: its pods are deleted; `deactivated`: it is never admitted again; `finished`;
            `timer`.
        at: seconds from the start.
        job: name of the job; empty for a timer.
        flavors: its flavors, of `reserved`, `check` and `admitted`.
        reason: reason of an eviction, such as `Preempted`, or of the end.
        message: Kueue's message of an eviction.
        check: name of the AdmissionCheck.
        attempt: number of the ProvisioningRequest, from 1.
        tag: the timer's tag.
        cycles: number of scheduling cycles since the start.
    """

    kind: Literal["reserved", "check", "admitted", "evicted", "deactivated", "finished", "timer"]
    at: float
    job: str = ""
    flavors: Flavors = field(default_factory=dict[str, Mapping[str, str]])
    reason: str = ""
    message: str = ""
    check: str = ""
    attempt: int = 0
    tag: str = ""
    cycles: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class End:
    """The end of a run.

    Attributes:
        at: seconds from the start.
        next: time of the next event; None if nothing more can happen.
        pending: jobs without quota once nothing more can happen, each with Kueue's reason.
        cycles: number of scheduling cycles since the start.
    """

    at: float
    next: float | None
    pending: Mapping[str, str]
    cycles: int


Answer: TypeAlias = Callable[[Event], Iterable[Action]]
"""Returns what follows from an event, now or later."""


def _ignore(_: Event) -> Iterable[Action]:
    return ()


class Kueue:
    """The process, which ends with the context.

    Args:
        program: the program.
        objects: manifests of a declaration; those of kinds that are not in `ORDER` are ignored.
        configuration: Kueue's configuration, API config.kueue.x-k8s.io/v1beta2.
        namespaces: labels of the namespaces of LocalQueues, besides the label of their name.
        answered: whether events are answered; if not, only decisions are reported: `check`, `admitted`,
            `evicted` and `deactivated`.
        exhaustive: let Kueue look for victims of every job, also where the shares of the queues show that
            there are too few, and compute hashes that it does not use. The events are the same.
    """

    def __init__(
        self,
        program: Path,
        objects: Iterable[Mapping[str, Any]],
        configuration: Mapping[str, Any],
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
        *,
        answered: bool = True,
        exhaustive: bool = False,
    ) -> None:
        read = [item for item in objects if item["kind"] in ORDER]
        read.sort(key=lambda item: ORDER.index(item["kind"]))
        own = namespaces or {}
        names = {str(item["metadata"]["namespace"]) for item in read if item["kind"] == "LocalQueue"}
        self._actions: list[Action | _Run] = []
        self._answered = answered
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 # closed with the process
        self._process = subprocess.Popen(  # noqa: S603
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._write(
            {
                "configuration": configuration,
                "namespaces": {
                    name: {"kubernetes.io/metadata.name": name, **own.get(name, {})}
                    for name in sorted(names | own.keys())
                },
                "objects": read,
                "unanswered": not answered,
                "exhaustive": exhaustive,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def add(self, *actions: Action) -> None:
        """Add actions before a run, or between runs."""
        self._actions += actions

    def run(self, answer: Answer = _ignore, until: float | None = None, before: float | None = None) -> End:
        """Let time pass until a time, or until nothing more can happen.

        Args:
            answer: answers events, or receives decisions.
            until: the time; None for no limit.
            before: a later time, before which the run ends with the first time that has a decision.

        Raises:
            KueueError: an action is invalid, or Kueue has failed.
        """
        self._write([*self._actions, _Run(until, before)])
        self._actions = []
        output = self._stream(self._process.stdout)
        while line := output.readline():
            event = json.loads(line)
            kind = event.pop("event")
            if kind == "end":
                return End(event["at"], event.get("next"), event.get("pending", {}), event.get("cycles", 0))
            actions = [*answer(Event(kind, **event))]
            if self._answered:
                self._write(actions)
        self._process.wait()
        self._errors.seek(0)
        message = self._errors.read().strip().partition("\n")[0]
        raise KueueError(f"Kueue in virtual time has failed: {message}.")

    def _write(self, value: Any) -> None:
        stream = self._stream(self._process.stdin)
        try:
            stream.write(f"{_encoded(value)}\n")
            stream.flush()
        except BrokenPipeError:
            return  # The output has ended, too: `run` raises the reason.

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None  # noqa: S101 # created with pipes
        return stream
