from kfp.dsl.base_component import BaseComponent

class Compiler:
    def compile(self, pipeline_func: BaseComponent, package_path: str) -> None: ...
