"""The wheel's extras, and those that a command needs when a module is missing."""

import contextlib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Final

from ebbtide.invocation import pip_install

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "gke": ("pulumi", "pulumi_gcp", "pulumi_kubernetes"),
    "aks": ("pulumi", "pulumi_azure_native", "pulumi_kubernetes"),
    "kfp": ("kfp",),
    "train": ("kubeflow",),
    "gcs": ("gcsfs",),
    "abfs": ("adlfs",),
    "cluster": ("kubernetes",),
    "rehearse": ("ebbtide_rehearsal",),
}
"""The modules of each extra, as pyproject.toml lists their distributions."""

OF_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {"destroy": ("cluster",), "rehearse": ("rehearse",)}
"""The extras of each command, besides a cloud's."""


def advice(error: BaseException, command: str) -> str | None:
    """Return installation advice for a command's error; None unless a module of an extra is missing.

    Args:
        error: the command's error; the missing module may be among its causes.
        command: its name.
    """
    for name in _missing_modules(error):
        owners = [
            extra for extra, modules in MODULES.items() if any(_within(name, module) for module in modules)
        ]
        if owners:
            needed = [
                extra for extra in OF_COMMANDS.get(command, ()) if extra not in owners and _is_missing(extra)
            ]
            either = (
                " For a cluster on AKS write aks in place of gke." if owners[:2] == ["gke", "aks"] else ""
            )
            return (
                f"`ebbtide {command}` needs {name}, which is not installed. Install it with: "
                f"{pip_install(owners[0], *needed)}.{either}"
            )
    return None


def _missing_modules(error: BaseException | None) -> Iterator[str]:
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        if isinstance(error, ModuleNotFoundError) and error.name:
            yield error.name
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _within(name: str, module: str) -> bool:
    """Check if a missing module is a module of an extra, a submodule or a parent package."""
    return f"{name}.".startswith(f"{module}.") or f"{module}.".startswith(f"{name}.")


def _is_missing(extra: str) -> bool:
    for module in MODULES[extra]:
        spec = None
        with contextlib.suppress(ModuleNotFoundError):  # of a missing parent package
            spec = find_spec(module)
        if spec is None:
            return True
    return False
