from collections.abc import Callable
from typing import Any

from kfp.dsl.base_component import BaseComponent

class PythonComponent(BaseComponent):
    python_func: Callable[..., Any]
