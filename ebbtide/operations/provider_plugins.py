"""The installed plugins of the clouds' providers, for a proxy between them and the engine."""

import os
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Protocol

from ebbtide.analysis.recording.provider_calls import PACKAGES
from ebbtide.analysis.recording.provider_proxy import Plugin, Upstream
from ebbtide.operations.failures import OperationError
from ebbtide.operations.pulumi_home import plugin_file, pulumi_home

DEBUG_PROVIDERS: Final = "PULUMI_DEBUG_PROVIDERS"
"""Environment variable of the engine with ports of providers that run already, by package."""

_PROVIDER: Final = "pulumi:providers:"


class Engine(Protocol):
    """The stack's `pulumi`."""

    @property
    def directory(self) -> Path:
        """Directory of the project."""
        ...

    def exported(self) -> dict[str, Any]:
        """See `Stack.exported`."""
        ...

    def run_globally(self, *command: str) -> str:
        """Return the output of a `pulumi` command that is about no stack."""
        ...


def upstreams(engine: Engine, types: Iterable[str]) -> dict[str, Upstream]:
    """Return the clouds' providers that a stack needs, by package.

    Args:
        types: types of the program's resources, besides those of the state.

    Raises:
        OperationError: a plugin cannot be installed.
    """
    resources: list[dict[str, Any]] = engine.exported()["deployment"].get("resources") or []
    needed = {type_.partition(":")[0] for type_ in (*types, *(item["type"] for item in resources))}
    versions = {
        item["type"].removeprefix(_PROVIDER): item.get("inputs", {}).get("version")
        for item in resources
        if item["type"].startswith(_PROVIDER)
    }
    running = _running()
    return {
        package: running.get(package) or _plugin(engine, package, versions)
        for package in PACKAGES
        if package in needed
    }


def _running() -> dict[str, int]:
    pairs = (item.partition(":") for item in os.environ.get(DEBUG_PROVIDERS, "").split(","))
    return {package: int(port) for package, _, port in pairs if port.isdecimal()}


def _plugin(engine: Engine, package: str, versions: Mapping[str, str | None]) -> Plugin:
    """Return the plugin of the SDK's version, as the program requests it, else of the state's."""
    try:
        version = metadata.version(f"pulumi-{package}")
    except metadata.PackageNotFoundError:
        version = versions.get(package) or ""
    if not version:
        raise OperationError(
            f"--record needs the version of the provider {package}, which neither the state nor this "
            f"environment has: install pulumi-{package}."
        )
    engine.run_globally("plugin", "install", "resource", package, version)
    program = plugin_file(pulumi_home(), package, version)
    if not program.is_file():
        raise OperationError(
            f"--record needs the provider {package} {version}, and there is none at {program}: set "
            "PULUMI_HOME to the directory that has it."
        )
    return Plugin(program, engine.directory)
