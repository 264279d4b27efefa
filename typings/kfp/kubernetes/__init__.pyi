from typing import Any

from kfp.dsl import PipelineTask

def add_toleration(
    task: PipelineTask,
    key: str | None = None,
    operator: str | None = None,
    value: str | None = None,
    effect: str | None = None,
    toleration_seconds: int | None = None,
) -> PipelineTask: ...
def add_node_affinity(
    task: PipelineTask,
    match_expressions: list[dict[str, Any]] | None = None,
    match_fields: list[dict[str, Any]] | None = None,
    weight: int | None = None,
) -> PipelineTask: ...
def add_node_selector(task: PipelineTask, label_key: str, label_value: str) -> PipelineTask: ...
def add_pod_label(task: PipelineTask, label_key: str, label_value: str) -> PipelineTask: ...
def add_pod_annotation(task: PipelineTask, annotation_key: str, annotation_value: str) -> PipelineTask: ...
def mount_pvc(
    task: PipelineTask, pvc_name: str, mount_path: str, sub_path: str = "", read_only: bool = False
) -> PipelineTask: ...
def use_secret_as_env(
    task: PipelineTask, secret_name: str, secret_key_to_env: dict[str, str], optional: bool = False
) -> PipelineTask: ...
def use_secret_as_volume(
    task: PipelineTask, secret_name: str, mount_path: str, optional: bool = False
) -> PipelineTask: ...
def empty_dir_mount(
    task: PipelineTask,
    volume_name: str,
    mount_path: str,
    medium: str | None = None,
    size_limit: str | None = None,
) -> PipelineTask: ...
def set_image_pull_secrets(task: PipelineTask, secret_names: list[str]) -> PipelineTask: ...
