"""The environment of a shell in which `pulumi` runs a project's program against the fake clouds.

The language host is the one beside the `pulumi` on PATH, where that is used; else the newest that can be
built, which is older than the engine (`pulumi-language-python` in the table of tools). It takes the Python
of the project's virtual environment, or the first on PATH, and creates no environment.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ebbtide_rehearsal.tools import OnStep, Origin, ensure, plugins

HOST: Final = "pulumi-language-python"
PASSPHRASE: Final = "rehearsal"  # noqa: S105 - of a state that holds no secret but this machine's own
_KUBERNETES: Final = "pulumi-resource-kubernetes"
_UNSET: Final = (
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_CONFIG_PASSPHRASE_FILE",
    "GOOGLE_PROJECT",
    "GOOGLE_CLOUD_PROJECT",
    "GCLOUD_PROJECT",
    "CLOUDSDK_CORE_PROJECT",
    "ARM_SUBSCRIPTION_ID",
)
"""Variables of a user's own clouds and state."""


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell's environment.

    Attributes:
        path: directories before the user's PATH.
        variables: other variables.
        versions: versions and origins of the programs that stand in PATH.
    """

    path: tuple[Path, ...]
    variables: Mapping[str, str]
    versions: Mapping[str, str]

    def having(self, **variables: str) -> "Shell":
        """Return this environment with more variables."""
        return replace(self, variables={**self.variables, **variables})

    def environment(self) -> dict[str, str]:
        """Return the environment of a process: this process's with the shell's."""
        own = {name: value for name, value in os.environ.items() if name not in _UNSET}
        path = os.pathsep.join((*map(str, self.path), os.environ.get("PATH", "")))
        return {**own, **self.variables, "PATH": path}

    def exports(self) -> Iterator[str]:
        """Yield the lines that give a POSIX shell this environment."""
        yield f"unset {' '.join(_UNSET)}"
        yield f'export PATH={shlex.quote(os.pathsep.join(map(str, self.path)))}:"$PATH"'
        for name, value in self.variables.items():
            yield f"export {name}={shlex.quote(value)}"


def shell(directory: Path, providers: str, on_step: OnStep) -> Shell:
    """Install the programs and return the environment.

    Args:
        directory: directory of programs, state and settings.
        providers: addresses of the fake clouds' providers, as `PULUMI_DEBUG_PROVIDERS` has them.
        on_step: as for `ensure`.

    Raises:
        ToolError: a program can be neither found nor built.
    """
    tools = ensure(["pulumi", _KUBERNETES], on_step=on_step)
    pulumi, kubernetes = tools.by_name["pulumi"], tools.by_name[_KUBERNETES]
    programs, home, state = directory / "bin", directory / ".pulumi", directory / "state"
    for created in (programs, state):
        created.mkdir(exist_ok=True)
    plugins.install(home, "kubernetes", kubernetes.path)
    own = pulumi.path.with_name(HOST)
    path = [programs, Path(sys.executable).parent]
    if pulumi.origin is Origin.PATH and own.is_file():
        path.insert(1, own.parent)
        host = f"the user's own, {own}"
    else:
        # The host requires this script beside itself.
        script = f"{HOST}-exec"
        tools = ensure([HOST, script], on_step=on_step)
        (programs / "pulumi").symlink_to(pulumi.path)
        shutil.copy(tools.path(HOST), programs)
        shutil.copy(tools.path(script) / script, programs)
        (programs / script).chmod(0o755)
        host = f"{tools.by_name[HOST].version}, {tools.by_name[HOST].origin}"
    return Shell(
        tuple(path),
        {
            # `pulumi` takes `~` from the system's list of users, not from HOME.
            "PULUMI_BACKEND_URL": state.as_uri(),
            "PULUMI_HOME": str(home),
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PULUMI_DEBUG_PROVIDERS": providers,
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        },
        {"language host": host, "Kubernetes provider": f"{kubernetes.version}, {kubernetes.origin}"},
    )
