"""The wheel's extras, and advice to install those that a command needs."""

import contextlib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Final

from ebbtide.text import install_command

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "gke": ("pulumi", "pulumi_gcp", "pulumi_kubernetes"),
    "aks": ("pulumi", "pulumi_azure_native", "pulumi_kubernetes"),
    "kfp": ("kfp",),
    "train": ("kubeflow",),
    "gcs": ("gcsfs",),
    "abfs": ("adlfs",),
    "cluster": ("kubernetes", "pathspec"),
    "registry": ("dxf", "requests"),
    "clouds": ("azure.identity", "azure.mgmt.compute", "google.auth", "requests"),
    "rehearse": (
        "ebbtide_rehearsal",
        "aiohttp",
        "certifi",
        "filelock",
        "google.rpc",
        "kubernetes",
        "platformdirs",
        "requests",
        "trustme",
    ),
    "replay": ("kueue_replay", "msgspec"),
}
"""Modules of each extra, as in pyproject.toml; `rehearse` and `replay` have a distribution of their own."""

_NEEDED_BY: Final[Mapping[str, tuple[str, ...]]] = {"replay": ("rehearse",)}
"""Extras that an extra needs."""

OF_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "destroy": ("gke", "cluster"),
    "extend": ("gke", "cluster"),
    "prices refresh": ("gke", "clouds"),
    "quota": ("gke", "clouds"),
    "reap": ("gke", "cluster"),
    "rehearse": ("gke", "rehearse"),
    "replay": ("gke", "rehearse", "replay"),
    "trace export": ("cluster",),
    "trace fetch": ("gke", "rehearse", "replay"),
    "sleep": ("gke", "cluster", "clouds"),
    "status": ("gke", "cluster"),
    "wake": ("gke", "cluster", "clouds"),
}
"""Extras of each command; aks is an alternative to gke."""

_CLOUDS: Final = ("gke", "aks")
_LOGIN: Final = " Then log in with `gcloud auth application-default login` or `az login`."


def advice(error: BaseException, command: str) -> str | None:
    """Return installation advice for a command's error; None unless a module of an extra is missing.

    Args:
        error: the command's error; the missing module may be among its causes.
        command: name of the command.
    """
    for name in _missing_modules(error):
        owners = [
            extra for extra, modules in MODULES.items() if any(_within(name, module) for module in modules)
        ]
        if owners:
            required = [
                extra for extra in OF_COMMANDS.get(command, ()) if extra in owners or _is_missing(extra)
            ]
            others = filter(_is_missing, _NEEDED_BY.get(owners[0], ()))
            extras = required if owners[0] in required else [*others, owners[0]]
            either = " For a cluster on AKS, write aks instead of gke." if extras[0] == "gke" else ""
            if len(owners) == 1 and owners[0] in _CLOUDS:
                either = ""
            login = _LOGIN if owners == ["clouds"] else ""
            return (
                f"`ebbtide {command}` needs {name.partition('.')[0]}, which is not installed. Install it "
                f"with: {install_command(*extras)}.{either}{login}"
            )
    return None


def require(extra: str) -> None:
    """Check for modules that a command imports only after minutes.

    Raises:
        ModuleNotFoundError: a module of the extra, or of one that it needs, is missing.
    """
    for module in (module for name in (extra, *_NEEDED_BY.get(extra, ())) for module in MODULES[name]):
        if not _exists(module):
            raise ModuleNotFoundError(name=module)


def _missing_modules(error: BaseException | None) -> Iterator[str]:
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        if isinstance(error, ModuleNotFoundError) and error.name:
            # google.protobuf is a dependency of Pulumi, and missing without it.
            yield "pulumi" if error.name.startswith("google") and not _exists("pulumi") else error.name
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _within(name: str, module: str) -> bool:
    """Return whether a missing module is a module of an extra, a submodule or a parent package."""
    return f"{name}.".startswith(f"{module}.") or f"{module}.".startswith(f"{name}.")


def _is_missing(extra: str) -> bool:
    """Return whether a module of an extra is missing; for a cloud's extra, also of the other cloud's."""
    return all(not all(map(_exists, MODULES[name])) for name in (_CLOUDS if extra in _CLOUDS else (extra,)))


def _exists(module: str) -> bool:
    with contextlib.suppress(ModuleNotFoundError):  # of a missing parent package
        return find_spec(module) is not None
    return False
