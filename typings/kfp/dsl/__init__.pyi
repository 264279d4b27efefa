from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

from kfp.dsl.base_component import BaseComponent
from kfp.dsl.graph_component import GraphComponent
from kfp.dsl.python_component import PythonComponent
from kfp.dsl.structures import RetryPolicy

_T = TypeVar("_T")

class ResourceSpec:
    cpu_request: str | None
    cpu_limit: str | None
    memory_request: str | None
    memory_limit: str | None
    accelerator_type: str | None
    accelerator_count: str | None

class ContainerSpecImplementation:
    resources: ResourceSpec | None

class TaskSpec:
    retry_policy: RetryPolicy | None

class PipelineTask:
    container_spec: ContainerSpecImplementation | None
    platform_config: dict[str, Any]
    _task_spec: TaskSpec
    @property
    def name(self) -> str: ...
    @property
    def output(self) -> Any: ...
    @property
    def outputs(self) -> Mapping[str, Any]: ...
    def after(self, *tasks: PipelineTask) -> PipelineTask: ...
    def set_caching_options(self, enable_caching: bool) -> PipelineTask: ...
    def set_env_variable(self, name: str, value: str) -> PipelineTask: ...
    def set_display_name(self, name: str) -> PipelineTask: ...
    def set_cpu_limit(self, cpu: Any) -> PipelineTask: ...
    def set_cpu_request(self, cpu: Any) -> PipelineTask: ...
    def set_memory_limit(self, memory: Any) -> PipelineTask: ...
    def set_memory_request(self, memory: Any) -> PipelineTask: ...
    def set_accelerator_type(self, accelerator: Any) -> PipelineTask: ...
    def set_accelerator_limit(self, limit: Any) -> PipelineTask: ...
    def set_retry(
        self,
        num_retries: int,
        backoff_duration: str | None = None,
        backoff_factor: float | None = None,
        backoff_max_duration: str | None = None,
    ) -> PipelineTask: ...

class ContainerSpec:
    def __init__(
        self, image: str, command: list[str] | None = None, args: list[Any] | None = None
    ) -> None: ...

PIPELINE_JOB_ID_PLACEHOLDER: str

@overload
def component(func: Callable[..., Any]) -> PythonComponent: ...
@overload
def component(
    *,
    base_image: str | None = None,
    packages_to_install: list[str] | None = None,
    install_kfp_package: bool = True,
    additional_funcs: list[Callable[..., Any]] | None = None,
) -> Callable[[Callable[..., Any]], PythonComponent]: ...
@overload
def component(
    func: Callable[..., Any],
    *,
    base_image: str | None = None,
    packages_to_install: list[str] | None = None,
    install_kfp_package: bool = True,
    additional_funcs: list[Callable[..., Any]] | None = None,
) -> PythonComponent: ...
def container_component(func: Callable[..., ContainerSpec]) -> BaseComponent: ...
@overload
def pipeline(func: Callable[..., Any]) -> GraphComponent: ...
@overload
def pipeline(*, name: str | None = None) -> Callable[[Callable[..., Any]], GraphComponent]: ...
def importer(artifact_uri: str, artifact_class: type[Any]) -> PipelineTask: ...

class Artifact:
    path: str
    uri: str

class Dataset(Artifact): ...
class Model(Artifact): ...

class Input(Generic[_T]):
    path: str

class Output(Generic[_T]):
    path: str

class _Group(AbstractContextManager[_Group]):
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

class If(_Group):
    def __init__(self, condition: Any, name: str | None = None) -> None: ...

class Else(_Group):
    def __init__(self, name: str | None = None) -> None: ...

class ExitHandler(_Group):
    def __init__(self, exit_task: PipelineTask, name: str | None = None) -> None: ...

class ParallelFor(_Group):
    def __init__(self, items: Any, name: str | None = None, parallelism: int | None = None) -> None: ...
