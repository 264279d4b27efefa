"""Scenarios: the file format, the built-in files, and the default scenario of a stack.

A file is YAML, camelCase as in the declaration; unknown keys are rejected.
"""

from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, PositiveFloat, PositiveInt, ValidationError, model_validator
from pydantic.alias_generators import to_snake

from ebbtide.declaration.model.base import Count, Declared
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.shape.findings import shape_faults
from ebbtide.declaration.project import yaml_file
from ebbtide.work.sweeps import SweepTask
from ebbtide.work.tasks import Task
from ebbtide_rehearsal import RehearsalError
from ebbtide_rehearsal.scenarios.conditions import Condition

Share = Annotated[float, Field(gt=0, le=1)]


_TASK: Final = frozenset(item.name for item in fields(Task)) - {"sidecars"}
_SWEEP: Final = frozenset(item.name for item in fields(SweepTask)) - {"sidecars"} | {"grid"}
_STARTING = 240.0  # wall-clock seconds for each Job, including node startup
_IDLE = 120.0  # wall-clock seconds until every work pool is scaled down to zero


def _known(fields: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Convert keys to Python's field names; unknown ones are rejected."""
    given = {to_snake(key): value for key, value in fields.items()}
    unknown = sorted(set(given) - known)
    if unknown:
        raise ValueError(f"There is no field {', '.join(unknown)}. Write one of {', '.join(sorted(known))}.")
    return given


class Up(Declared):
    """`pulumi up`, optionally after a change of the declaration."""

    do: Literal["up"]
    change: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Changes of `ebbtide:cluster` by key; null removes a key."""
    pools: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    """Changes of pools by name and key; null removes a key."""
    refresh: bool = False
    """Run `pulumi refresh` first."""
    unchanged: bool = False
    """Require that every resource is unchanged."""
    keeps: tuple[str, ...] = ()
    """Resources that may be updated, but not replaced or deleted: parts of their names."""
    refused: str | None = None
    """Text of the expected error; nothing may be changed then."""


class Submit(Declared):
    """Submission of work, with the kubeconfig from the stack's outputs."""

    do: Literal["submit"]
    manifests: str | None = None
    """A YAML file of objects, relative to the scenario file."""
    program: str | None = None
    """A Python program that prints objects as YAML, relative to the scenario file; `EBBTIDE_PROFILE` is the
    stack's profile.
    """
    job: Annotated[dict[str, Any], AfterValidator(lambda fields: _known(fields, _TASK))] | None = None
    """A Job built from the profile: the fields of `ebbtide.work.jobs.job`."""
    sweep: Annotated[dict[str, Any], AfterValidator(lambda fields: _known(fields, _SWEEP))] | None = None
    """A sweep built from the profile: `grid` and the fields of `ebbtide.work.sweeps.sweep`."""
    count: PositiveInt = 1
    """Number of copies; a number is appended to each name if there are several."""
    runs_for: PositiveFloat | None = None
    """Wall-clock seconds until a pod ends."""
    exit_code: Count | None = None
    """Exit status of a pod; 0 by default."""
    process: bool = False
    """Run a pod's command as a process of this machine."""
    namespace: str | None = None
    """Default namespace of the objects."""
    as_: str | None = None
    """User to impersonate, such as a member of a team. Default: the identity of the stack's kubeconfig."""
    refused: str | None = None
    """Text of the expected error, from the profile or the API server."""

    @model_validator(mode="after")
    def _one_of(self) -> "Submit":
        if sum(given is not None for given in (self.manifests, self.program, self.job, self.sweep)) != 1:
            raise ValueError("Either manifests, program, job or sweep is needed. Write exactly one of them.")
        return self


class EveryPool(Declared):
    """A short Job on each work pool, or in its queue if the pool runs only queued work."""

    do: Literal["every-pool"]
    runs_for: PositiveFloat = 3
    """Wall-clock seconds until a pod ends."""


class RunPipeline(Declared):
    """A run of a compiled pipeline on Argo's real controller; its steps run as processes of this machine."""

    do: Literal["run-pipeline"]
    program: str
    """A Python program that writes compiled pipelines into the working directory, relative to the scenario
    file; `EBBTIDE_PROFILE` is the stack's profile.
    """
    pipeline: str = ""
    """Name of the program's output file to run, without `.yaml`; required if it writes several."""
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Values of the pipeline's inputs; `{home}` in them is the scenario's directory."""
    runs_for: PositiveFloat | None = None
    """Minimum wall-clock seconds of each step's pod, so that a fault can strike while it runs."""


class FailureInjection(Declared):
    """Injection of a cloud failure."""

    do: Literal["fault"]
    kind: Literal["no-stock", "quota", "reclaim", "api-error", "slow"]
    """Kind of failure."""
    target: str = "*"
    """Its target: a pool, for `no-stock` also a zone of it (`pool/zone`), a quota, or an operation and a
    type; `*` and `?` as in file names.
    """
    name: str | None = None
    """Name for a later `lift`."""
    times: PositiveInt | None = None
    """Number of occurrences; unlimited until lifted by default, once for a reclaim."""
    share: Share | None = None
    """For a reclaim: the share of nodes."""
    count: PositiveInt | None = None
    """For a reclaim: the number of nodes, instead of a share."""
    graceful: bool = True
    """For a reclaim: notify nodes beforehand."""
    limit: Count | None = None
    """For a quota: the remaining limit."""
    message: str | None = None
    """For an API error: its message."""
    seconds: PositiveFloat | None = None
    """For a slow response: its delay by the wall clock."""

    @model_validator(mode="after")
    def _complete(self) -> "FailureInjection":
        needed = {"quota": "limit", "api-error": "message", "slow": "seconds"}.get(self.kind)
        if needed and getattr(self, needed) is None:
            raise ValueError(f"A fault of the kind {self.kind} needs {needed}. Add {needed}.")
        if self.kind == "reclaim" and (self.share is None) == (self.count is None):
            raise ValueError("A reclaim needs either share or count. Write exactly one of them.")
        return self


class Lift(Declared):
    """Removal of an injected failure."""

    do: Literal["lift"]
    fault: str
    """Its name."""


class Pause(Declared):
    """A wait."""

    do: Literal["pause"]
    seconds: PositiveFloat
    """Wall-clock seconds."""


class Expect(Declared):
    """An expectation that must become true in time."""

    do: Literal["expect"]
    within: PositiveFloat = 1
    """Timeout in wall-clock seconds."""
    that: Condition
    """Conditions that must hold simultaneously."""


class Delete(Declared):
    """Deletion of objects by their owner."""

    do: Literal["delete"]
    kind: Literal["Job", "PersistentVolumeClaim", "Pod"]
    """Their kind."""
    name: str
    """Name pattern; `*` and `?` as in file names."""


class Destroy(Declared):
    """`pulumi destroy`, which must leave no resources in the cloud and no objects of the stack in the
    cluster.
    """

    do: Literal["destroy"]
    refused: str | None = None
    """Text of the expected error; nothing may be deleted then."""


Step = Annotated[
    Up | Submit | EveryPool | RunPipeline | FailureInjection | Lift | Pause | Expect | Delete | Destroy,
    Field(discriminator="do"),
]


class Scenario(Declared):
    """A scenario."""

    title: str
    """Its purpose, in a line."""
    stack: str | None = None
    """A stack's file, relative to the scenario file; the rehearsed stack by default."""
    declaration: dict[str, Any] | None = None
    """Declaration under `ebbtide:cluster` that replaces the one in the stack's file."""
    speed: Annotated[float, Field(ge=1, le=600)] = 60
    """Simulated seconds per second, for the cloud's delays: node startup, scale-down delay."""
    steps: list[Step]
    """Steps, in order. A remaining stack is destroyed at the end."""


def general(cluster: Cluster) -> Scenario:
    """Build the scenario: up, refresh and up without changes, a Job on every work pool, scale-down of all
    pools to their minimum, destroy.
    """
    work = [pool for pool in cluster.pools if not pool.is_system]
    steps: list[dict[str, Any]] = [{"do": "up"}, {"do": "up", "unchanged": True, "refresh": True}]
    if work:
        steps += [
            {"do": "every-pool"},
            {"do": "expect", "within": _STARTING, "that": {"jobs": {"succeeded": len(work)}}},
            {
                "do": "expect",
                "within": _IDLE,
                "that": {"nodes": {pool.name: pool.nodes.min for pool in work}},
            },
        ]
    if cluster.lifetime is None:
        steps += [
            {"do": "destroy", "refused": "protect"},
            {"do": "up", "change": {"lifetime": {"hours": 1}}},
        ]
    steps += [{"do": "destroy"}]
    return Scenario.model_validate(
        {
            "title": f"{cluster.name} is created, runs a Job on every work pool, and is destroyed",
            "steps": steps,
        }
    )


_LIBRARY: Final = Path(__file__).parent / "library"


class ScenarioError(RehearsalError):
    """An unreadable or invalid scenario; the message lists all errors."""


def read(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        ScenarioError: it is unreadable or invalid.
    """
    try:
        written = yaml_file.read(path).value
    except yaml_file.YamlFileError as error:
        raise ScenarioError(str(error)) from error
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}.") from error
    try:
        return Scenario.model_validate(written)
    except ValidationError as error:
        whole = "Write a mapping with title and steps."
        faults = shape_faults(Scenario, error, written, "The scenario", whole)
        errors = "\n".join(f"  {fault}" for fault in faults)
        raise ScenarioError(f"{path} is not a scenario; nothing was started.\n{errors}") from error


def chosen(name: str) -> Path:
    """Return the file of a scenario: a built-in one by name, or any path.

    Raises:
        ScenarioError: there is no such scenario.
    """
    names = built_in()
    if name in names:
        return names[name]
    if Path(name).is_file():
        return Path(name)
    near = get_close_matches(name, names, n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    raise ScenarioError(
        f"There is no file {name}, and no scenario of that name.{meant} There are: {', '.join(names)}."
    )


def built_in() -> dict[str, Path]:
    """Return the files of the built-in scenarios by name."""
    return {path.stem: path for path in sorted(_LIBRARY.glob("*.yaml"))}
