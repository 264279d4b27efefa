"""A shell with the real `pulumi`, its Python language host and its Kubernetes provider.

The language host is the one beside the `pulumi` on PATH, where that is used; else the newest that can be
built, which is older than the engine (`pulumi-language-python` in the table of tools). It takes the Python
that is first on PATH, which is the test's own, and never creates an environment.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ebbtide_rehearsal.tools import Origin, ensure, plugins

HOST = "pulumi-language-python"


@dataclass(frozen=True, slots=True)
class Terminal:
    """A shell in a project's directory, where `pulumi` has a home and a backend of its own.

    Attributes:
        root: the directory.
        environment: the shell's.
    """

    root: Path
    environment: dict[str, str]

    def run(self, command: str) -> str:
        """Standard output of a command that succeeds; nothing can be answered, and nothing has to be."""
        done = subprocess.run(
            ["bash", "-c", command],  # noqa: S607 - the one that is first on PATH
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def terminal_in(directory: Path, root: Path, providers: str, test: pytest.Item) -> Terminal:
    """A shell.

    Args:
        directory: for state and settings.
        root: the project's directory.
        providers: addresses of the fake clouds' providers, as `PULUMI_DEBUG_PROVIDERS` has them.
        test: the test, whose report names the language host and the provider.
    """
    programs = _programs(directory / "bin", test)
    kubernetes = ensure(["pulumi-resource-kubernetes"], on_step=lambda _: None).by_name[
        "pulumi-resource-kubernetes"
    ]
    test.user_properties.append(("Kubernetes provider", f"{kubernetes.version}, {kubernetes.origin}"))
    plugins.install(directory / ".pulumi", "kubernetes", kubernetes.path)
    (directory / "state").mkdir()
    settings = {
        "HOME": str(directory),
        "PATH": os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"])),
        # `pulumi` takes `~` from the system's list of users, not from HOME: state would stay in the real one.
        "PULUMI_BACKEND_URL": (directory / "state").as_uri(),
        "PULUMI_HOME": str(directory / ".pulumi"),
        "PULUMI_CONFIG_PASSPHRASE": "a passphrase that you keep",
        "PULUMI_DEBUG_PROVIDERS": providers,
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_CONFIRMATIONS": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    return Terminal(root, os.environ | settings)


def _programs(directory: Path, test: pytest.Item) -> Path:
    """A directory with the engine, the language host and the script that the host wants beside itself."""
    directory.mkdir()
    pulumi = ensure(["pulumi"], on_step=lambda _: None).by_name["pulumi"]
    own = pulumi.path.with_name(HOST)
    if pulumi.origin is Origin.PATH and own.is_file():
        test.user_properties.append(("language host", f"the user's own, {own}"))
        return own.parent
    script = f"{HOST}-exec"
    tools = ensure([HOST, script], on_step=lambda _: None)
    (directory / "pulumi").symlink_to(pulumi.path)
    shutil.copy(tools.path(HOST), directory)
    shutil.copy(tools.path(script) / script, directory)
    (directory / script).chmod(0o755)
    test.user_properties.append(
        ("language host", f"{tools.by_name[HOST].version}, {tools.by_name[HOST].origin}")
    )
    return directory
