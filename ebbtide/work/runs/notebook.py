"""JupyterLab on a pod: a session that Jupyter's own culling ends."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ebbtide.placement import Profile
from ebbtide.work.jobs import CONTAINER
from ebbtide.work.objects import Object
from ebbtide.work.runs.code import DIRECTORY
from ebbtide.work.runs.folder import Folder
from ebbtide.work.runs.sessions import NOTEBOOK, idle_seconds, session_job

PORT: Final = 8888
"""Port of JupyterLab on the loopback interface of its pod."""

_FILES: Final = "${TMPDIR:-/tmp}/ebbtide-jupyter"
_START: Final = """
import json, os, pathlib, sys

# Installed packages stand behind the image's own, in kernels too.
packages = os.environ["EBBTIDE_PACKAGES"]
sys.path.append(packages)
kernels = pathlib.Path(packages, "share/jupyter/kernels/python3")
if kernels.is_dir():
    program = f"import sys; sys.path.append({packages!r}); import ipykernel.kernelapp as app; "
    words = [sys.executable, "-c", program + "app.launch_new_instance()", "-f", "{connection_file}"]
    kernel = {"argv": words, "display_name": "Python 3", "language": "python"}
    (kernels / "kernel.json").write_text(json.dumps(kernel))

# A request that only reads is no activity: an open tab polls (jupyterlab/jupyterlab#19796).
from jupyter_server.base.handlers import APIHandler
from jupyterlab.labapp import main

update = APIHandler.update_api_activity
APIHandler.update_api_activity = lambda self: None if self.request.method == "GET" else update(self)
main()
"""
# An image without JupyterLab gets it from PyPI, into a directory that any user can write.
_SCRIPT: Final = f"""
files={_FILES}
export EBBTIDE_PACKAGES="$files/packages" IPYTHONDIR="$files/ipython"
export JUPYTER_RUNTIME_DIR="$files/runtime" JUPYTER_CONFIG_DIR="$files/config" JUPYTER_DATA_DIR="$files/data"
if ! python3 -c 'import jupyterlab' 2>/dev/null; then
  python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts \\
    --target "$EBBTIDE_PACKAGES" "jupyterlab==$1"
  export JUPYTERLAB_DIR="$EBBTIDE_PACKAGES/share/jupyter/lab"
  export JUPYTER_CONFIG_PATH="$EBBTIDE_PACKAGES/etc/jupyter" JUPYTER_PATH="$EBBTIDE_PACKAGES/share/jupyter"
fi
shift
exec python3 -c "$0" "$@"
"""
_CULLING: Final = (
    "ServerApp.shutdown_no_activity_timeout",
    "MappingKernelManager.cull_idle_timeout",
    "TerminalManager.cull_inactive_timeout",
)
_LONGEST_INTERVAL: Final = 60


def notebook(
    profile: Profile,
    folder: Folder,
    user: str,
    parameters: Mapping[str, Any],
    idle: str,
    *,
    version: str,
    **fields: Any,
) -> tuple[Object, ...]:
    """Return the Job of JupyterLab, and its dependent objects.

    Notebooks are kept on the volume, if the task mounts one, and else in the folder's copy in the pod.

    Args:
        profile: the cluster.
        folder: the code.
        user: the user's name.
        parameters: the options, for the Job's annotation.
        idle: time without activity after which kernels, terminals and then the server end.
        version: version of JupyterLab for an image without it.
        **fields: as for `objects_of`, without the command.

    Raises:
        WorkloadError: the Job cannot run as described; the message lists all problems.
    """
    limit = idle_seconds(idle)
    interval = min(_LONGEST_INTERVAL, limit)
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": PORT,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": fields.get("mount_path") if fields.get("volume") else DIRECTORY,
        **dict.fromkeys(_CULLING, limit),
        "MappingKernelManager.cull_interval": interval,
        "MappingKernelManager.cull_connected": True,
        "TerminalManager.cull_interval": interval,
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    command = (
        "sh",
        "-ec",
        _SCRIPT.replace("$", "$$"),
        _START,
        version,
        "--no-browser",
        "--allow-root",
        *words,
    )
    job, *dependents = session_job(profile, folder, user, parameters, NOTEBOOK, command=command, **fields)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container["ports"] = [{"name": "jupyter", "containerPort": PORT}]
    return job, *dependents


def read_token(kubectl: Sequence[str], pod: Object) -> str:
    """Return the token of JupyterLab in a pod, from the file that the server writes; empty before its start.

    Args:
        kubectl: the command of kubectl, with the pod's namespace.
        pod: the pod.
    """
    words = ["exec", pod["metadata"]["name"], "-c", CONTAINER, "--"]
    script = f'cat "{_FILES}/runtime"/jpserver-*.json'
    result = subprocess.run(  # noqa: S603 - kubectl
        [*kubectl, *words, "sh", "-c", script], capture_output=True, text=True, check=False
    )
    try:
        return str(json.loads(result.stdout)["token"])
    except (ValueError, KeyError):
        return ""
