"""Secrets in steps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ebbtide.work.pipelines.faults import faults_of
from ebbtide.work.pipelines.steps import Step
from ebbtide.work.secrets import check_image_pull_secrets, check_secrets, key_reference

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask


def use_secrets(
    task: "PipelineTask",
    *,
    env: Mapping[str, str] | None = None,
    volumes: Mapping[str, str] | None = None,
    image_pull_secrets: Sequence[str] = (),
) -> "PipelineTask":
    """Use Secrets of the pipeline's namespace in a step: by reference, and never as a parameter of the run,
    which Kubeflow Pipelines displays and stores.

    Args:
        task: a step with its own container.
        env: environment variables from keys of Secrets: `{"WANDB_API_KEY": "tracker/api-key"}`.
        volumes: Secrets to mount, a file for each key, by name: `{"tracker": "/secrets/tracker"}`.
        image_pull_secrets: Secrets for pulling the step's image.

    Returns:
        The task.

    Raises:
        WorkloadError: with all problems.
    """
    step = Step(task)
    env, volumes = env or {}, volumes or {}
    with faults_of(step) as problems:
        problems.check(
            step.has_pod,
            "it is a pipeline or an importer: give its steps their Secrets where they are created.",
        )
        problems.check(
            env or volumes or image_pull_secrets,
            "no Secret is named: write env, volumes or image_pull_secrets.",
        )
        check_secrets(env, volumes, problems)
        check_image_pull_secrets(image_pull_secrets, problems)
    for name, reference in env.items():
        secret, key = key_reference(reference)
        step.read_secret(secret, key, name)
    for secret, path in volumes.items():
        step.mount_secret(secret, path)
    step.pull_with(image_pull_secrets)
    return task
