"""Pulumi's provider plugins, as the engine looks them up: a directory per package and version.

Source: pulumi 3.259, sdk/go/common/workspace/plugins.go (`GetPluginDir`, `PluginInfo.Path`).
"""

import os
from importlib import metadata
from pathlib import Path

from ebbtide_rehearsal.tools.items import Tool


def sdk_version(package: str) -> str:
    """Return the version of a package's Python SDK, for which a program requests the provider."""
    return metadata.version(f"pulumi-{package}")


def plugin_file(home: Path, package: str) -> Path:
    """Return the location of the provider that a program requests, below a `PULUMI_HOME`."""
    return home / "plugins" / f"resource-{package}-v{sdk_version(package)}" / f"pulumi-resource-{package}"


def install(home: Path, package: str, program: Path) -> None:
    """Link a provider as the plugin that a program requests, below a new `PULUMI_HOME`."""
    plugin = plugin_file(home, package)
    plugin.parent.mkdir(parents=True)
    plugin.symlink_to(program)


def installed_plugin(tool: Tool) -> tuple[Path, str] | None:
    """Return the provider that Pulumi has installed for the Python SDK, with its version; None if missing."""
    if tool.plugin is None:
        return None
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    path = plugin_file(home, tool.plugin)
    return (path, sdk_version(tool.plugin)) if path.is_file() else None
