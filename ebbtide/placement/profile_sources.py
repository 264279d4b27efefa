"""Where a profile is: a file, a variable, a stack's output, the cluster itself.

The two that are asked for it are command-line programs. A Pulumi stack is read by `pulumi`, which alone knows
its backend and its secrets; there is no Pulumi package here. The cluster is asked through `kubectl`: whoever
makes work for it applies manifests and looks at pods with it, under the same context, and the clouds' logins
are plugins that it has (`gke-gcloud-auth-plugin`, `kubelogin`); the Python client would be a dependency, and
this needs the standard library alone. In a pod neither is needed: mount the ConfigMap and name the file.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ebbtide.invocation import command_line
from ebbtide.placement.errors import ProfileError

VARIABLE: Final = "EBBTIDE_PROFILE"
OUTPUT: Final = "placementProfile"
"""What the stack's output is called."""
CONFIG_MAP: Final = "ebbtide-profile"
"""What the ConfigMap is called in a team's namespace, and `KEY` its key."""
KEY: Final = "profile.json"
_STACK: Final = "stack:"
_CONFIG_MAP: Final = "configmap:"
_PATIENCE: Final = 60
"""Seconds to wait for a program: a login may ask the network first."""


def found(source: str | Path | None) -> Mapping[str, Any]:
    """The data of a profile.

    Args:
        source: where it is, as `Profile.load` says.

    Raises:
        ProfileError: it is not there, or no JSON object.
    """
    if source is None:
        source = os.environ.get(VARIABLE, "")
        if not source.strip():
            raise ProfileError(
                f"No profile is named, and the variable {VARIABLE} is not set. Write the profile with "
                f"`{command_line('profile', '--out', 'profile.json')}`, and set the variable: "
                f"`export {VARIABLE}=profile.json`."
            )
    text = str(source).strip()
    if text.startswith(_STACK):
        return _parsed(_of_stack(text.removeprefix(_STACK)), text)
    if text.startswith(_CONFIG_MAP):
        return _of_config_map(text.removeprefix(_CONFIG_MAP), text)
    if text.startswith("{"):
        return _parsed(text, "that was given as text")
    return _parsed(_of_file(source), text)


def _of_file(source: str | Path) -> str:
    try:
        return Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise ProfileError(
            f"The profile {source} cannot be read: {error.strerror}. "
            f"Write it with `{command_line('profile', '--out', str(source))}`."
        ) from None
    except UnicodeDecodeError:
        raise ProfileError(f"The profile {source} is no text.") from None


def _of_stack(name: str) -> str:
    """The output of a stack; of the one that is selected where none is named."""
    chosen = ["--stack", name] if name else []
    return _said("pulumi", "stack", "output", OUTPUT, "--json", "--non-interactive", *chosen)


def _of_config_map(place: str, source: str) -> Mapping[str, Any]:
    namespace, _, name = place.partition("/")
    if not namespace:
        raise ProfileError(
            f"{source} names no namespace: write configmap:NAMESPACE, or configmap:NAMESPACE/NAME."
        )
    name = name or CONFIG_MAP
    text = _said("kubectl", "get", "configmap", name, "--namespace", namespace, "--output", "json")
    held: object = _parsed(text, source).get("data")
    inside: object = held.get(KEY) if isinstance(held, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(inside, str):
        raise ProfileError(f"ConfigMap {name} in namespace {namespace} has no {KEY}: it holds no profile.")
    return _parsed(inside, source)


def _said(*command: str) -> str:
    """What a program prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE)  # noqa: S603
    except FileNotFoundError:
        raise ProfileError(
            f"The profile is read with `{command[0]}`, which is not there: install it, or name a file."
        ) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProfileError(f"The profile cannot be read with `{' '.join(command)}`: {error}.") from None
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"it ended with status {done.returncode}"
        raise ProfileError(f"The profile cannot be read with `{' '.join(command)}`: {said}")
    return done.stdout


def _parsed(text: str, source: str) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ProfileError(f"The profile {source[:80]} is not JSON: {error}.") from None
    if not isinstance(data, dict):
        raise ProfileError(f"The profile {source[:80]} is not a JSON object.")
    return data  # pyright: ignore[reportUnknownVariableType]  # json.loads has no type
