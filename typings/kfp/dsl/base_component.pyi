from typing import Any

from kfp.dsl import PipelineTask

class BaseComponent:
    name: str
    def __call__(self, *args: Any, **kwargs: Any) -> PipelineTask: ...
