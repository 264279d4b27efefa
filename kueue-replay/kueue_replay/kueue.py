"""Kueue in virtual time: its unmodified scheduler, queues and reconciler in one process (0.19.2).

Time and the heap of events are in that process (`tools/modules/kueue-replay`); it reports each decision and
reads what follows from it. Equal input gives equal events.
"""

import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Literal, Self, TypeAlias

from msgspec import Struct
from msgspec.json import Decoder, Encoder

from ebbtide_rehearsal import RehearsalError

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
_ENCODER: Final = Encoder(enc_hook=dict)


class KueueError(RehearsalError):
    """The process has rejected its input or failed; the message is its own."""


class PodSet(Struct, frozen=True):
    """Equal pods of a job.

    Attributes:
        count: number of pods.
        requests: requests of each, as Kubernetes quantities.
        node_selector: node labels that they select.
        tolerations: their tolerations, as in a pod.
    """

    name: str
    count: int
    requests: Mapping[str, str]
    node_selector: Mapping[str, str] = {}
    tolerations: Sequence[Mapping[str, Any]] = ()


class _Act(Struct, frozen=True, tag_field="do", tag=True):
    """An action at a time, in seconds from the start, on a job by its name."""


class Submit(_Act, frozen=True):
    """Create a job at a time.

    Attributes:
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


class PodsReady(_Act, frozen=True):
    """Set whether all pods of an admitted job are ready; void once the job is evicted.

    Attributes:
        ready: false once a pod has failed, such as with a reclaimed node, until it is replaced.
    """

    at: float
    job: str
    ready: bool = True


class Finish(_Act, frozen=True):
    """End a job; void once it is evicted."""

    at: float
    job: str


class Check(_Act, frozen=True):
    """Set an admission check of a job; void once it is evicted.

    Attributes:
        check: name of the AdmissionCheck.
        state: `Failed` is a failed ProvisioningRequest: Kueue retries it after the backoff of its
            ProvisioningRequestConfig, or rejects the job after the last attempt.
    """

    at: float
    job: str
    check: str
    state: Literal["Ready", "Failed"]


class Apply(_Act, frozen=True):
    """Create or change an object: a quota, a stop policy, a flavor.

    Attributes:
        manifest: the object, of a kind in `ORDER`.
    """

    at: float
    manifest: Mapping[str, Any]


Action: TypeAlias = Submit | PodsReady | Finish | Check | Apply


class _Run(_Act, frozen=True, tag="Run"):
    until: float | None
    before: float | None


class Event(Struct, frozen=True, rename={"kind": "event"}):
    """A decision of Kueue, or what happened.

    Attributes:
        kind: `reserved`: the job has quota; `check`: an admission check is due; `admitted`: its pods are
            created; `evicted`: its pods are deleted; `deactivated`: it is never admitted again; `finished`;
            `end`: the run has ended.
        at: seconds from the start.
        job: name of the job; empty for an end.
        flavors: its flavors, of `reserved`, `check` and `admitted`.
        reason: reason of an eviction, such as `Preempted`, or of the end.
        message: Kueue's message of an eviction.
        check: name of the AdmissionCheck.
        attempt: number of the ProvisioningRequest, from 1.
        cycles: number of scheduling cycles since the start.
        next: time of what happens after an end; None if nothing more can happen.
        pending: jobs without quota at the end of a run without a limit, each with Kueue's reason.
    """

    kind: Literal["reserved", "check", "admitted", "evicted", "deactivated", "finished", "end"]
    at: float
    job: str = ""
    flavors: Flavors = {}
    reason: str = ""
    message: str = ""
    check: str = ""
    attempt: int = 0
    cycles: int = 0
    next: float | None = None
    pending: Mapping[str, str] = {}


_DECODER: Final = Decoder(Event)

Answer: TypeAlias = Callable[[Event], Iterable[Action]]
"""Returns what follows from an event, now or later."""


def _ignore(_: Event) -> Iterable[Action]:
    return ()


class Kueue:
    """The process, which ends with the context.

    Args:
        objects: manifests of a declaration; those of kinds that are not in `ORDER` are ignored.
        configuration: Kueue's configuration, API config.kueue.x-k8s.io/v1beta2.
        namespaces: labels of the namespaces of LocalQueues, besides the label of their name.
        answered: whether events are answered; if not, only decisions are reported: `check`, `admitted`,
            `evicted` and `deactivated`.
    """

    def __init__(
        self,
        program: Path,
        objects: Iterable[Mapping[str, Any]],
        configuration: Mapping[str, Any],
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
        *,
        answered: bool = True,
    ) -> None:
        read = [item for item in objects if item["kind"] in ORDER]
        read.sort(key=lambda item: ORDER.index(item["kind"]))
        own = namespaces or {}
        names = {str(item["metadata"]["namespace"]) for item in read if item["kind"] == "LocalQueue"}
        self._actions: list[Action | _Run] = []
        self._answered = answered
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 # closed with the process
        self._process = subprocess.Popen(  # noqa: S603
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
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
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def add(self, *actions: Action) -> None:
        """Add actions before a run, or between runs."""
        self._actions += actions

    def run(self, answer: Answer = _ignore, until: float | None = None, before: float | None = None) -> Event:
        """Let time pass until a time, or until nothing more can happen.

        Args:
            answer: answers events, or receives decisions.
            until: the time; None for no limit.
            before: a later time, before which the run ends with the first time that has a decision.

        Returns:
            the end.

        Raises:
            KueueError: an action is invalid, or Kueue has failed.
        """
        self._write([*self._actions, _Run(until, before)])
        self._actions = []
        output = self._stream(self._process.stdout)
        while line := output.readline():
            event = _DECODER.decode(line)
            if event.kind == "end":
                return event
            actions = [*answer(event)]
            if self._answered:
                self._write(actions)
        self._process.wait()
        self._errors.seek(0)
        message = self._errors.read().strip().partition("\n")[0]
        raise KueueError(f"Kueue in virtual time has failed: {message}.")

    def _write(self, value: Any) -> None:
        stream = self._stream(self._process.stdin)
        try:
            stream.write(_ENCODER.encode(value) + b"\n")
            stream.flush()
        except BrokenPipeError:
            return  # The output has ended, too: `run` raises the reason.

    @staticmethod
    def _stream(stream: IO[bytes] | None) -> IO[bytes]:
        assert stream is not None  # noqa: S101 # created with pipes
        return stream
