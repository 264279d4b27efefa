"""Pulumi's provider plugins, as the engine looks them up: a directory per package and version.

Source: pulumi 3.259, sdk/go/common/workspace/plugins.go (`GetPluginDir`, `PluginInfo.Path`).
"""

import os
from pathlib import Path


def pulumi_home() -> Path:
    """Return the user's directory of Pulumi, where it installs plugins."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")


def plugin_file(home: Path, package: str, version: str) -> Path:
    """Return the location of a provider's program below a `PULUMI_HOME`."""
    return home / "plugins" / f"resource-{package}-v{version}" / f"pulumi-resource-{package}"
