"""Distributed training on the pools: placement of a TrainJob's pods, as options of the kubeflow SDK or as
parts of a manifest.

Trainer 2 accepts placements as patches of the job's runtime (`spec.runtimePatches`, Trainer 2.3.0), which the
SDK has as options (kubeflow 0.5.0). The SDK starts and follows the job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, TypedDict, Unpack

from ebbtide.placement import Profile
from ebbtide.text import install_command
from ebbtide.values.paths import Object
from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.placement import Placement, check_capacity, place
from ebbtide.work.secrets import (
    check_image_pull_secrets,
    check_secrets,
    secret_mounts,
    secret_variables,
    secret_volumes,
)
from ebbtide.work.tasks import Task, memory_mounts, memory_volumes

MANAGER: Final = "ebbtide.dev/placement"
"""Manager of the patch; a TrainJob has a patch for each manager."""


_CONTAINER: Final = "node"
"""The training container, in every runtime of Trainer's own (Trainer 2.3.0, manifests/base/runtimes)."""
_SDK_NAMES: Final = {"imagePullSecrets": "image_pull_secrets"}
"""Fields of a pod whose names are in snake case in the SDK."""


class TrainFields(TypedDict, total=False):
    """Fields of a TrainJob's pods; one of `pool` and `queue` is required."""

    pool: str
    """The required pool. Either this or `queue`."""
    queue: str
    """The queue, by its name in the declaration: all pods are admitted at once."""
    namespace: str
    """Namespace of the TrainJob. Default: the SDK's, or the only namespace that has the queue."""
    gpus: int
    """Accelerators for each pod. Required if the nodes have accelerators; 0 uses none of them."""
    cpu: str
    """CPU for each pod: cores, such as `4`, or `500m`."""
    memory: str
    """Memory for each pod: `48Gi`."""
    shared_memory: str
    """Size of a volume in memory at `/dev/shm`, a part of `memory`: `8Gi`."""
    priority: str
    """In a queue: the WorkloadPriorityClass, one of the profile's `priorities`."""
    max_run: str | timedelta
    """Requested duration of nodes, if the queue has a pool with queued capacity."""
    secret_env: Mapping[str, str]
    """Environment variables from keys of Secrets in the namespace: `{"WANDB_API_KEY": "tracker/api-key"}`.
    Only for `manifest()`: the SDK's options cannot set them (kubeflow 0.5.0)."""
    secret_volumes: Mapping[str, str]
    """Secrets to mount, a file for each key, by name: `{"tracker": "/secrets/tracker"}`."""
    image_pull_secrets: Sequence[str]
    """Secrets in the namespace for pulling images."""
    keep_node: bool
    """True if the cluster autoscaler must not end its pods to remove nodes that are less than half used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainPlacement:
    """Placement of a TrainJob.

    Attributes:
        nodes: number of pods; `num_nodes` of the SDK's trainers.
        resources: requests of each pod; `resources_per_node` of the SDK's trainers.
        namespace: namespace of the job; empty for the SDK's.
        env: environment variables of the training container, from Secrets.
        variables: its other environment variables, for GPUDirect; `env` of the SDK's trainers.
        pods: patches of the pods' template, by the name of the runtime's replicated job.
    """

    nodes: int
    resources: dict[str, str]
    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]
    env: list[Object]
    pods: dict[str, Object]
    variables: dict[str, str] = field(default_factory=dict[str, str])

    def options(self) -> list[Any]:
        """Return the options for `TrainerClient().train(options=…)`. All patches of the SDK have the same
        manager, and a job accepts one patch per manager: do not add another `RuntimePatch`.

        Raises:
            ModuleNotFoundError: the SDK is not installed.
            WorkloadError: there are variables from Secrets.
        """
        if self.env:
            raise WorkloadError(
                "The kubeflow SDK's options cannot set environment variables from Secrets: the training "
                "would run without them. Mount the Secret with secret_volumes, or use manifest()."
            )
        try:
            from kubeflow.trainer import options  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "Options need the kubeflow SDK, which is not installed. Install it with: "
                f"{install_command('train')}. `manifest()` needs none.",
                name=error.name,
            ) from None
        builders: list[Any] = []
        if self.labels:
            builders.append(options.Labels(self.labels))
        if self.annotations:
            builders.append(options.Annotations(self.annotations))
        if self.pods:
            jobs = [
                options.ReplicatedJobPatch(
                    name=name,
                    template=options.JobTemplatePatch(
                        spec=options.JobSpecPatch(
                            template=options.PodTemplatePatch(
                                metadata=pod.get("metadata"), spec=_as_option(pod.get("spec", {}), options)
                            )
                        )
                    ),
                )
                for name, pod in self.pods.items()
            ]
            spec = options.JobSetSpecPatch(replicated_jobs=jobs)
            template = options.JobSetTemplatePatch(spec=spec)
            runtime = options.TrainingRuntimeSpecPatch(template=template)
            builders.append(options.RuntimePatch(training_runtime_spec=runtime))
        return builders

    def manifest(self) -> Object:
        """Return the parts of a TrainJob with its placement, to merge into its manifest."""
        metadata: Object = {
            name: part
            for name, part in (
                ("namespace", self.namespace),
                ("labels", self.labels),
                ("annotations", self.annotations),
            )
            if part
        }
        trainer: Object = {"numNodes": self.nodes}
        if self.env or self.variables:
            variables = [{"name": name, "value": value} for name, value in self.variables.items()]
            trainer["env"] = [*variables, *self.env]
        if self.resources:
            trainer["resourcesPerNode"] = {"requests": self.resources, "limits": self.resources}
        spec: Object = {"trainer": trainer}
        if self.pods:
            spec["runtimePatches"] = [_patch(self.pods)]
        return {"metadata": metadata, "spec": spec}


def train_job(
    profile: Profile, *, nodes: int = 1, jobs: Sequence[str] = ("node",), **fields: Unpack[TrainFields]
) -> TrainPlacement:
    """Return the placement of a TrainJob on a pool or in a queue.

    On a pool, its pods have tolerations and a required node affinity. In a queue they have neither: Kueue
    adds those of the selected pool, as a separate patch, and admits all pods or none. Without a queue, pods
    without a node wait, while the others occupy theirs: prefer a queue for more than one pod.

    The runtime determines whether a lost pod restarts the job (its JobSet's failure policy).

    Args:
        nodes: number of pods that train together.
        jobs: the runtime's replicated jobs to place. Those that train are `node` in a runtime for torch, and
            `launcher` and `node` in one for MPI, such as deepspeed's (Trainer, manifests/base/runtimes,
            2026); those for data and models are not placed.
        **fields: placement and requirements of each pod; see `TrainFields`.

    Raises:
        WorkloadError: the job cannot run there; the message lists all problems.
    """
    problems = Problems()
    problems.check(nodes >= 1, f"nodes is {nodes}; write 1 or more.")
    problems.check(jobs and all(jobs), "jobs is empty; name the replicated job that trains, mostly node.")
    task = Task(name="train", image="train", **fields)
    try:
        check_secrets(task.secret_env, task.secret_volumes, problems)
        check_image_pull_secrets(task.image_pull_secrets, problems)
        placement = place(profile, task)
    except WorkloadError as error:
        raise problems.error(*error.problems) from None
    check_capacity(placement.pools, task, nodes, problems)
    problems.end()
    direct = placement.gpu_direct
    if direct and direct.init_containers:  # A patch of the runtime adds no container.
        rest = {key: text for key, text in placement.pod_annotations.items() if key not in direct.annotations}
        placement, direct = replace(placement, pod_annotations=rest, gpu_direct=None), None
    template = {"metadata": placement.pod_metadata, "spec": placement.pod | _pod_of(task)}
    pod = {key: part for key, part in template.items() if part}
    return TrainPlacement(
        nodes=nodes,
        resources=_resources(task, placement),
        namespace=placement.namespace,
        labels=placement.labels,
        annotations=placement.annotations,
        env=secret_variables(task.secret_env),
        pods=dict.fromkeys(jobs, pod) if pod else {},
        variables=dict(direct.env) if direct else {},
    )


def _resources(task: Task, placement: Placement) -> dict[str, str]:
    resources = {"cpu": task.cpu, "memory": task.memory}
    if placement.accelerator:
        resources[placement.accelerator] = str(task.gpu_count)
    return {name: amount for name, amount in resources.items() if amount}


def _pod_of(task: Task) -> dict[str, Any]:
    """Return the fields of the pods' spec besides their placement."""
    pull = [{"name": name} for name in task.image_pull_secrets]
    mounts = [*memory_mounts(task), *secret_mounts(task.secret_volumes)]
    return {
        **({"imagePullSecrets": pull} if pull else {}),
        **(
            {
                "volumes": [*memory_volumes(task), *secret_volumes(task.secret_volumes)],
                "containers": [{"name": _CONTAINER, "volumeMounts": mounts}],
            }
            if mounts
            else {}
        ),
    }


def _as_option(pod: dict[str, Any], options: Any) -> Any:
    """Return the fields of the pods' spec in the SDK's form."""
    containers = [
        options.ContainerPatch(name=item["name"], volume_mounts=item["volumeMounts"])
        for item in pod.get("containers", ())
    ]
    fields = {_SDK_NAMES.get(name, name): part for name, part in pod.items()}
    return options.PodSpecPatch(**{**fields, "containers": containers or None})


def _patch(pods: dict[str, Object]) -> Object:
    jobs = [{"name": name, "template": {"spec": {"template": pod}}} for name, pod in pods.items()]
    return {
        "manager": MANAGER,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }
