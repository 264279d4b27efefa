"""Check that kfp is installed, without importing it, which takes seconds."""

from importlib.machinery import PathFinder
from importlib.util import find_spec

from ebbtide.invocation import install_command


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
