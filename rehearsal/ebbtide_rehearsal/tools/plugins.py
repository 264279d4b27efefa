"""Pulumi's provider plugins, of the versions that a program with the Python SDK requests."""

from importlib import metadata
from pathlib import Path

from ebbtide.operations import pulumi_home
from ebbtide_rehearsal.tools.items import Tool


def sdk_version(package: str) -> str:
    """Return the version of a package's Python SDK, for which a program requests the provider."""
    return metadata.version(f"pulumi-{package}")


def plugin_file(home: Path, package: str) -> Path:
    """Return the location of the provider that a program requests, below a `PULUMI_HOME`."""
    return pulumi_home.plugin_file(home, package, sdk_version(package))


def install(home: Path, package: str, program: Path) -> None:
    """Link a provider as the plugin that a program requests, below a new `PULUMI_HOME`."""
    plugin = plugin_file(home, package)
    plugin.parent.mkdir(parents=True)
    plugin.symlink_to(program)


def installed_plugin(tool: Tool) -> tuple[Path, str] | None:
    """Return the provider that Pulumi has installed for the Python SDK, with its version; None if missing."""
    if tool.plugin is None:
        return None
    path = plugin_file(pulumi_home.pulumi_home(), tool.plugin)
    return (path, sdk_version(tool.plugin)) if path.is_file() else None
