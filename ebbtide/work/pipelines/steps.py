"""A step in kfp, its requirements and its errors: the only module that accesses kfp's objects.

kfp has no type annotations; the attributes of its tasks that are read get their types here. Source: kfp and
kfp-kubernetes 2.17.0, dsl/pipeline_task.py, dsl/structures.py, kubernetes/*.py.
"""

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.machinery import PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypedDict

from ebbtide.placement import MatchExpression, Toleration
from ebbtide.placement.profile import GpuDirectProfile
from ebbtide.text import install_command
from ebbtide.work.arguments import memory_bytes, seconds
from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.placement import BUCKET_MOUNTED, KEPT, QUEUE_LABEL
from ebbtide.work.tasks import SHARED_MEMORY_PATH, SHARED_MEMORY_VOLUME, Task

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask
    from kfp.dsl.structures import RetryPolicy

_MEMORY: Final = re.compile(r"\d+(?:[KMGTPE]i?)?")
"""Syntax of `set_memory_limit`."""
_RUNTIME: Final = "{{"
"""Prefix of a value that a run fills in."""


def _extension() -> ModuleType:
    """Import kfp's extension for Kubernetes, which a program without pipelines does not need."""
    from kfp import kubernetes  # noqa: PLC0415

    return kubernetes


@dataclass(frozen=True, slots=True)
class Step:
    """A task of a pipeline."""

    task: "PipelineTask"

    @property
    def name(self) -> str:
        """Name of the step in its pipeline."""
        return self.task.name

    @property
    def has_pod(self) -> bool:
        """True if it has a container: false for a pipeline as a step, and for an importer."""
        return self.task.container_spec is not None

    @property
    def has_retries(self) -> bool:
        """True if it has retries."""
        return self._retries is not None

    @property
    def retried_seconds(self) -> int | None:
        """Limit of its retries in seconds from the start of the first attempt, by default kfp's hour; None
        without retries."""
        return self._retries.to_proto().backoff_max_duration.seconds if self._retries else None

    @property
    def _retries(self) -> "RetryPolicy | None":
        # kfp has a setter, but no getter.
        return self.task._task_spec.retry_policy  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    @property
    def accelerators(self) -> int | None:
        """Number of accelerators in the step; None if unset, 1 if a parameter of the run sets it."""
        count = self._resource("accelerator_count")
        if count is None:
            return None
        return 1 if str(count).startswith(_RUNTIME) else int(count)

    @property
    def accelerator(self) -> str:
        """Resource name of its accelerators; empty if unset, or if a parameter of the run sets it."""
        return self._known("accelerator_type")

    @property
    def cpu(self) -> str:
        """CPU in the step: the limit, or else the request."""
        return self._known("cpu_limit") or self._known("cpu_request")

    @property
    def memory(self) -> str:
        """Memory in the step: the limit, or else the request."""
        return self._known("memory_limit") or self._known("memory_request")

    def _resource(self, name: str) -> str | None:
        return getattr(getattr(self.task.container_spec, "resources", None), name, None)

    def _known(self, name: str) -> str:
        """Return its value in kfp; empty if a parameter of the run sets it."""
        text = self._resource(name) or ""
        return "" if text.startswith(_RUNTIME) else text

    @property
    def _kubernetes(self) -> Mapping[str, Any]:
        return self.task.platform_config.get("kubernetes", {})

    @property
    def is_placed(self) -> bool:
        """True if it already has a node selector or an affinity."""
        labels = self._kubernetes.get("podMetadata", {}).get("labels", {})
        return bool(
            self._kubernetes.get("nodeAffinity")
            or self._kubernetes.get("nodeSelector")
            or QUEUE_LABEL in labels
        )

    @property
    def mounts_bucket(self) -> bool:
        """True if it mounts a bucket on GKE."""
        annotations = self._kubernetes.get("podMetadata", {}).get("annotations", {})
        return BUCKET_MOUNTED.items() <= annotations.items()

    def tolerate(self, tolerations: Iterable[Toleration]) -> None:
        """Add tolerations to its pod."""
        for toleration in tolerations:
            _extension().add_toleration(self.task, **toleration.manifest())

    def lead(self, expressions: Iterable[MatchExpression], weight: int | None) -> None:
        """Add a node affinity to its pod; required without a weight, otherwise preferred.

        All expressions are in one call: kfp's driver makes each call a term, and a node has to match only one
        term.
        """
        _extension().add_node_affinity(
            self.task, match_expressions=[item.manifest() for item in expressions], weight=weight
        )

    def label(self, labels: Mapping[str, str]) -> None:
        """Label its pod."""
        for key, value in labels.items():
            _extension().add_pod_label(self.task, key, value)

    def annotate(self, annotations: Mapping[str, str]) -> None:
        """Annotate its pod."""
        for key, value in annotations.items():
            _extension().add_pod_annotation(self.task, key, value)

    def attach(self, direct: GpuDirectProfile | None) -> None:
        """Add the interfaces and variables of GPUDirect; a step has no sidecar, so none for TCPXO."""
        if direct and not direct.init_containers:
            self.annotate(direct.annotations)
            for name, value in direct.env.items():
                self.task.set_env_variable(name, value)

    def use_secrets(
        self, env: Mapping[str, str], volumes: Mapping[str, str], image_pull_secrets: Sequence[str]
    ) -> None:
        """Set variables from keys of Secrets, mount Secrets, and set those for pulling its image."""
        for name, reference in env.items():
            secret, _, key = reference.partition("/")
            _extension().use_secret_as_env(self.task, secret, {key: name})
        for secret, path in volumes.items():
            _extension().use_secret_as_volume(self.task, secret, path)
        _extension().set_image_pull_secrets(self.task, [*image_pull_secrets])

    def mount_claim(self, claim: str, path: str) -> None:
        """Mount a claim."""
        _extension().mount_pvc(self.task, claim, path)

    def limit(self, needs: "RequirementFields", accelerator: str) -> None:
        """Set the limits, the resource name of its accelerators, and whether its pod keeps its node."""
        if "cpu" in needs:
            self.task.set_cpu_limit(needs["cpu"])
        if "memory" in needs:
            memory = needs["memory"]
            # In bytes if kfp does not accept the notation (`1.5Gi`).
            self.task.set_memory_limit(memory if _MEMORY.fullmatch(memory) else str(memory_bytes(memory)))
        if "shared_memory" in needs:
            path, size = SHARED_MEMORY_PATH, needs["shared_memory"]
            _extension().empty_dir_mount(
                self.task, SHARED_MEMORY_VOLUME, path, medium="Memory", size_limit=size
            )
        if accelerator:
            if "gpus" in needs:
                self.task.set_accelerator_limit(needs["gpus"])
            self.task.set_accelerator_type(accelerator)
        if needs.get("keep_node", False):
            self.annotate(KEPT)

    def retry(self, count: int, wait: int, factor: float, longest: int) -> None:
        """Retry it after a failure; durations are in seconds."""
        self.task.set_retry(
            num_retries=count,
            backoff_duration=f"{wait}s",
            backoff_factor=factor,
            backoff_max_duration=f"{longest}s",
        )


def require() -> None:
    """Check that kfp and kfp-kubernetes are installed.

    Raises:
        ModuleNotFoundError: with the packages to install.
    """
    spec = find_spec("kfp")
    if spec is None or PathFinder.find_spec("kfp.kubernetes", spec.submodule_search_locations) is None:
        raise ModuleNotFoundError(
            "Placing the steps of a pipeline needs the Kubeflow Pipelines SDK, which is not installed. "
            f"Install it with: {install_command('kfp')}.",
            name="kfp",
        )


@contextmanager
def faults_of(step: Step) -> Generator[Problems]:
    """Collect the errors of a step, and raise them at the end of the block, prefixed with the step's name.

    Raises:
        WorkloadError: with all problems, including those that the block raises.
    """
    problems = Problems()
    with problems.collecting():
        yield problems
    if problems.all:
        raise WorkloadError(*(f"Step {step.name}: {text}" for text in dict.fromkeys(problems.all)))


class RequirementFields(TypedDict, total=False):
    """Fields of a step; omitted ones keep their values in kfp."""

    gpus: int
    """Accelerators, as a limit; their kind follows from the pool. Required, here or in kfp, if the nodes have
    accelerators; 0 uses none of them."""
    cpu: str
    """CPU limit, and also the request: cores, such as `4`, or `500m`."""
    memory: str
    """Memory limit, and also the request: `48G`, `48Gi`."""
    shared_memory: str
    """Size of a volume in memory at `/dev/shm`, a part of `memory`: `8Gi`."""
    lasts: str | timedelta
    """Expected duration of the step: `6h`. It is not a limit; warnings use it."""
    checkpoints: bool
    """True if a retry of the step continues from its last checkpoint."""
    keep_node: bool
    """True if the cluster autoscaler must not end its pod to remove a node that is less than half used."""


def requirements(step: Step, needs: RequirementFields, problems: Problems) -> Task:
    """Return a step as a task of a Job, to validate it by the same rules; malformed amounts become problems.

    A step has neither a Job's name nor its image, and the name of its claim does not matter.
    """
    gpus = needs.get("gpus", step.accelerators)
    problems.check(gpus is None or gpus >= 0, f"gpus is {gpus}; write 0 or more.")
    with problems.collecting():
        lasting(needs)
    task = Task(
        name="step",
        image="step",
        gpus=None if gpus is None else max(0, gpus),
        cpu=needs.get("cpu", step.cpu),
        memory=needs.get("memory", step.memory),
        shared_memory=needs.get("shared_memory", ""),
        volume="step" if step.mounts_bucket else "",
    )
    for amount in ("cpu_m", "memory_b", "shared_memory_b"):
        with problems.collecting():
            getattr(task, amount)
    return task


def lasting(needs: RequirementFields) -> int | None:
    """Return the expected duration of a step in seconds; None if unset.

    Raises:
        WorkloadError: it is malformed.
    """
    return seconds("lasts", needs["lasts"]) if "lasts" in needs else None
