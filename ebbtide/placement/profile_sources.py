"""Sources of a profile: a file, an environment variable, a stack's output, a ConfigMap.

A stack is read with `pulumi`, which has access to its backend and its secrets, and a cluster with `kubectl`,
with its current context and credential plugins (`gke-gcloud-auth-plugin`, `kubelogin`): this module needs
only the standard library. A pod needs neither program: it mounts the ConfigMap as a file."""

import base64
import binascii
import hashlib
import json
import os
import re
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ebbtide.errors import EbbtideError
from ebbtide.text import command_line
from ebbtide.values.user_files import LARGEST_GENERATED, UserFileError, parse_json, read_text

VARIABLE: Final = "EBBTIDE_PROFILE"
OUTPUT: Final = "placementProfile"
"""Name of the stack's output."""
PREVIEW_KUBECONFIG: Final = "EBBTIDE_PREVIEW_KUBECONFIG"
"""Environment variable of a preview with the file that a program writes its kubeconfig to."""
CONFIG_MAP: Final = "ebbtide-profile"
"""Name of the ConfigMap in a team's namespace; `KEY` is its key."""
KEY: Final = "profile.json"
_DIGEST: Final = "sha256:"
_DIGEST_LENGTH: Final = 12
_STACK: Final = "stack:"
_CONFIG_MAP: Final = "configmap:"
_KLOG: Final = re.compile(r"[EWI]\d{4} ")
"""The start of a line of kubectl's own log, whose last attempt is also its error."""
_WITHOUT_KUBECONFIG: Final = "localhost:8080"
"""Address that kubectl uses without a kubeconfig (client-go, tools/clientcmd, 1.36)."""
_TIMEOUT: Final = 60
"""Time limit in seconds for a program, including a login over the network."""


class ProfileError(EbbtideError, ValueError):
    """An unreadable profile, or one without the requested pool or queue."""


def stack_output(data: Mapping[str, Any]) -> str:
    """Encode a profile as a stack output: `sha256:DIGEST`, a space, and its compressed JSON in base64.

    Pulumi prints an object or a JSON text with a line for each value, and truncates any other text after 150
    characters (pulumi 3.259.0, pkg/backend/display/object_diff.go).
    """
    text = json.dumps(data, separators=(",", ":")).encode()
    digest = hashlib.sha256(text).hexdigest()[:_DIGEST_LENGTH]
    return f"{_DIGEST}{digest} {base64.b64encode(zlib.compress(text, 9)).decode()}"


def is_profile_text(text: str) -> bool:
    """Return whether a text is a profile, as JSON or as a stack output, instead of the location of one."""
    return text.lstrip().startswith(("{", _DIGEST))


def read(source: str | Path | None, *, namespace: str = "", context: str = "") -> Mapping[str, Any]:
    """Read the data of a profile.

    Args:
        source: as in `Profile.load`.
        namespace: as in `Profile.load`.
        context: as in `Profile.load`.

    Raises:
        ProfileError: it does not exist, or is not a JSON object.
    """
    source = source or os.environ.get(VARIABLE, "")
    text = str(source).strip()
    if not text:
        return _of_kubeconfig(namespace, context)
    if text.startswith(_STACK):
        return _parsed(_of_stack(text.removeprefix(_STACK)), text)
    if text.startswith(_CONFIG_MAP):
        return _of_config_map(text.removeprefix(_CONFIG_MAP), text)
    if is_profile_text(text):
        return _parsed(text, "that was given as text")
    return _parsed(_of_file(source), text)


def _of_file(source: str | Path) -> str:
    try:
        return read_text(Path(source), LARGEST_GENERATED)
    except UserFileError as error:
        raise ProfileError(
            f"{source}: {error} Write a profile with `{command_line('profile', '--out', 'profile.json')}`."
        ) from None


def _of_stack(name: str) -> str:
    """Return the profile's output of a stack; default: the selected stack."""
    options = ["--stack", name] if name else []
    return _run("pulumi", "stack", "output", OUTPUT, "--json", "--non-interactive", *options)


def _of_kubeconfig(namespace: str, context: str) -> Mapping[str, Any]:
    """Return the profile in a namespace, by default that of the kubeconfig's context."""
    try:
        return _config_map(CONFIG_MAP, namespace, context)
    except ProfileError as error:
        raise ProfileError(
            f"No profile is named, the variable {VARIABLE} is not set, and {_described(namespace)} has none: "
            f"{str(error).rstrip('.')}. Choose another namespace, or write the profile with "
            f"`{command_line('profile', '--out', 'profile.json')}` and set the variable: "
            f"`export {VARIABLE}=profile.json`."
        ) from None


def _described(namespace: str) -> str:
    return f"namespace {namespace}" if namespace else "the namespace of the kubeconfig's context"


def _of_config_map(address: str, source: str) -> Mapping[str, Any]:
    namespace, _, name = address.partition("/")
    if not namespace:
        raise ProfileError(
            f"{source} names no namespace: write configmap:NAMESPACE, or configmap:NAMESPACE/NAME."
        )
    return _config_map(name or CONFIG_MAP, namespace)


def _config_map(name: str, namespace: str, context: str = "") -> Mapping[str, Any]:
    given = {"--namespace": namespace, "--context": context}
    options = [word for option, value in given.items() if value for word in (option, value)]
    text = _run("kubectl", "get", "configmap", name, *options, "--output", "json")
    data: object = _parsed(text, name).get("data")
    profile: object = data.get(KEY) if isinstance(data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(profile, str):
        raise ProfileError(
            f"ConfigMap {name} in {_described(namespace)} has no {KEY}: it contains no profile."
        )
    return _parsed(profile, name)


def _run(*command: str) -> str:
    """Run a program and return its output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT)  # noqa: S603
    except FileNotFoundError:
        raise ProfileError(
            f"The profile is read with `{command[0]}`, which is not installed: install it, or name a file."
        ) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProfileError(f"The profile cannot be read with `{' '.join(command)}`: {error}.") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not _KLOG.match(line)]
        message = " ".join(" ".join(lines).split()) or f"it ended with status {done.returncode}"
        if command[0] == "kubectl" and _WITHOUT_KUBECONFIG in message:
            message = "there is no kubeconfig for a cluster."
        raise ProfileError(f"The profile cannot be read with `{' '.join(command)}`: {message}")
    return done.stdout


def _parsed(text: str, source: str) -> Mapping[str, Any]:
    """Parse JSON text, the value of a stack output, or that value as JSON text."""
    if text.lstrip().startswith(_DIGEST):
        text = _decoded(text, source)
    try:
        data = parse_json(text)
    except ValueError as error:
        raise ProfileError(f"The profile {source[:80]} is not JSON: {error}.") from None
    if isinstance(data, str) and data.startswith(_DIGEST):
        return _parsed(data, source)
    if not isinstance(data, dict):
        raise ProfileError(f"The profile {source[:80]} is not a JSON object.")
    return data  # pyright: ignore[reportUnknownVariableType]  # json.loads has no type


def _decoded(text: str, source: str) -> str:
    """Return the JSON text of a stack output."""
    try:
        compressed = base64.b64decode(text.partition(" ")[2].strip(), validate=True)
        decompressor = zlib.decompressobj()
        content = decompressor.decompress(compressed, LARGEST_GENERATED).decode()
        problem = "" if decompressor.eof else "its end is missing"
    except (binascii.Error, zlib.error, UnicodeDecodeError) as error:
        content, problem = "", str(error)
    if problem:
        raise ProfileError(
            f"The profile {source[:80]} is a truncated or changed stack output: {problem}. Copy it "
            f"completely, with `pulumi stack output {OUTPUT}`."
        )
    return content
