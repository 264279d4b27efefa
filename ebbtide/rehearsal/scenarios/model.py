"""A scenario as it is written: YAML, camelCase as in the declaration, unknown keys refused."""

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, PositiveFloat, PositiveInt, model_validator
from pydantic.alias_generators import to_snake

from ebbtide.model.base import Count, Declared
from ebbtide.rehearsal.scenarios.conditions import Condition
from ebbtide.workloads.tasks import TaskFields

Share = Annotated[float, Field(gt=0, le=1)]


_TASK: Final = frozenset(TaskFields.__annotations__)
_SWEEP: Final = _TASK | {"grid", "parallelism", "max_failed"}


def _known(fields: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Fields as Python has them; unknown ones are refused."""
    given = {to_snake(key): value for key, value in fields.items()}
    unknown = sorted(set(given) - known)
    if unknown:
        raise ValueError(f"there is no field {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return given


class Up(Declared):
    """`pulumi up`, after a change of the declaration if one is given."""

    do: Literal["up"]
    change: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What to change of `ebbtide:cluster` first, key by key; null removes one."""
    pools: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    """What to change of single pools first, by name, key by key; null removes one."""
    refresh: bool = False
    """Run `pulumi refresh` first."""
    unchanged: bool = False
    """Whether every resource must stay as it is."""
    keeps: tuple[str, ...] = ()
    """Resources that may be updated, and must neither be replaced nor deleted: parts of their names."""
    refused: str | None = None
    """Words of the refusal that must come; nothing may be changed then."""


class Submit(Declared):
    """Work that is submitted, with the kubeconfig that the stack gives out."""

    do: Literal["submit"]
    manifests: str | None = None
    """A YAML file of objects, relative to the scenario's own."""
    program: str | None = None
    """A Python program that prints objects as YAML, relative to the scenario's own file; `EBBTIDE_PROFILE` is
    the stack's profile."""
    job: Annotated[dict[str, Any], AfterValidator(lambda fields: _known(fields, _TASK))] | None = None
    """A Job made from the profile: the fields of `ebbtide.workloads.jobs.job`."""
    sweep: Annotated[dict[str, Any], AfterValidator(lambda fields: _known(fields, _SWEEP))] | None = None
    """A sweep made from the profile: `grid` and the fields of `ebbtide.workloads.sweeps.sweep`."""
    count: PositiveInt = 1
    """How many of them; a number is put behind the name of each where there are several."""
    runs_for: PositiveFloat | None = None
    """Seconds of the wall clock until a pod ends."""
    exit_code: Count | None = None
    """What a pod ends with: 0 unless said."""
    process: bool = False
    """Whether a pod's command really runs, as a process of this machine."""
    namespace: str | None = None
    """Where, for objects that do not say."""
    as_: str | None = None
    """User as whom it is submitted, such as a team's member, by impersonation. Default: the stack's own."""
    refused: str | None = None
    """Words of the refusal that must come, from the profile or the API server."""

    @model_validator(mode="after")
    def _one_of(self) -> "Submit":
        if sum(given is not None for given in (self.manifests, self.program, self.job, self.sweep)) != 1:
            raise ValueError("one of `manifests`, `program`, `job` and `sweep` is what is submitted")
        return self


class EveryPool(Declared):
    """A short Job on each work pool, or in its queue where it only runs queued work."""

    do: Literal["every-pool"]
    runs_for: PositiveFloat = 3
    """Seconds of the wall clock until a pod ends."""


class RunPipeline(Declared):
    """A run of a compiled pipeline on Argo's real controller; its steps run as processes of this machine."""

    do: Literal["run-pipeline"]
    program: str
    """A Python program that writes compiled pipelines into the working directory, relative to the scenario's
    own file; `EBBTIDE_PROFILE` is the stack's profile."""
    pipeline: str = ""
    """Which of the files that the program writes, without `.yaml`; needed where it writes several."""
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Values of the pipeline's inputs; `{home}` in them is the scenario's directory."""


class GoWrong(Declared):
    """A fault of the cloud."""

    do: Literal["fault"]
    kind: Literal["no-stock", "quota", "reclaim", "api-error", "slow"]
    """What goes wrong."""
    target: str = "*"
    """What it strikes: a pool, a quota, or an operation and a type; `*` and `?` as in file names."""
    name: str | None = None
    """To lift it by."""
    times: PositiveInt | None = None
    """How often it strikes; until it is lifted, unless said. A reclaim strikes once."""
    share: Share | None = None
    """Of a reclaim: which part of the nodes."""
    count: PositiveInt | None = None
    """Of a reclaim: how many nodes instead."""
    graceful: bool = True
    """Of a reclaim: whether the nodes are told beforehand."""
    limit: Count | None = None
    """Of a quota: what is left of it."""
    message: str | None = None
    """Of an API error: what the API says."""
    seconds: PositiveFloat | None = None
    """Of a slow answer: how much longer it takes, by the wall clock."""

    @model_validator(mode="after")
    def _complete(self) -> "GoWrong":
        needed = {"quota": "limit", "api-error": "message", "slow": "seconds"}.get(self.kind)
        if needed and getattr(self, needed) is None:
            raise ValueError(f"a fault of the kind {self.kind} needs `{needed}`")
        if self.kind == "reclaim" and (self.share is None) == (self.count is None):
            raise ValueError("a reclaim needs either `share` or `count`")
        return self


class Lift(Declared):
    """The end of a fault."""

    do: Literal["lift"]
    fault: str
    """Its name."""


class Pause(Declared):
    """Time that goes by."""

    do: Literal["pause"]
    seconds: PositiveFloat
    """Of the wall clock."""


class Expect(Declared):
    """What must be so, or become so in time."""

    do: Literal["expect"]
    within: PositiveFloat = 1
    """Seconds of the wall clock that it may take."""
    that: Condition
    """All of it must hold at once."""


class Delete(Declared):
    """Objects that their owner removes."""

    do: Literal["delete"]
    kind: Literal["Job", "PersistentVolumeClaim", "Pod"]
    """Of which kind."""
    name: str
    """Of which name; `*` and `?` as in file names."""


class Destroy(Declared):
    """`pulumi destroy`, after which nothing may be left, neither in the cloud nor of ours in the cluster."""

    do: Literal["destroy"]
    refused: str | None = None
    """Words of the refusal that must come; nothing may be gone then."""


Step = Annotated[
    Up | Submit | EveryPool | RunPipeline | GoWrong | Lift | Pause | Expect | Delete | Destroy,
    Field(discriminator="do"),
]


class Scenario(Declared):
    """A scenario."""

    title: str
    """What it shows, in a line."""
    stack: str | None = None
    """A stack's file, relative to the scenario's own; left out, the stack that is rehearsed."""
    declaration: dict[str, Any] | None = None
    """What to declare under `ebbtide:cluster` instead of what the stack's file says."""
    speed: Annotated[float, Field(ge=1, le=600)] = 60
    """Simulated seconds in a second, for what the cloud takes: starting a node, waiting before one goes."""
    steps: list[Step]
    """What is done, in order. A stack that is still up at the end is destroyed."""
