"""The two steps as component files: `python components.py` writes copydata.yaml and train.yaml."""

from pathlib import Path

from kfp import compiler, dsl
from trainer import copydata, train

IMAGE = "us-docker.pkg.dev/acme-ml/training/python-trainer:1"
"""Built from the Dockerfile in this directory, with kfp and Ebbtide."""

COMPONENTS = {
    function.__name__: dsl.component(function, base_image=IMAGE, install_kfp_package=False)
    for function in (copydata, train)
}


def write(directory: Path) -> None:
    """Write the component files into a directory."""
    for name, component in COMPONENTS.items():
        compiler.Compiler().compile(component, str(directory / f"{name}.yaml"))


if __name__ == "__main__":
    write(Path(__file__).parent)
