"""The two steps as component files: `python components.py` writes copydata.yaml and train.yaml. The
placement profile is read from EBBTIDE_PROFILE."""

from pathlib import Path

from kfp import compiler, dsl
from trainer import IMAGE, copydata, train

from ebbtide.placement import Profile

_IMAGE = Profile.load().image(*IMAGE)
COMPONENTS = {
    function.__name__: dsl.component(function, base_image=_IMAGE, install_kfp_package=False)
    for function in (copydata, train)
}


def write(directory: Path) -> None:
    """Write the component files into a directory."""
    for name, component in COMPONENTS.items():
        compiler.Compiler().compile(component, str(directory / f"{name}.yaml"))


if __name__ == "__main__":
    write(Path(__file__).parent)
