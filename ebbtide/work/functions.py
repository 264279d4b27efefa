"""Runs of Python functions, from Python: `run(train, pool="t4-spot", gpus=1)`."""

import inspect
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ebbtide.clients.kubernetes import Api
from ebbtide.placement import Profile
from ebbtide.work import submission
from ebbtide.work.errors import WorkloadError
from ebbtide.work.logs import LogStream
from ebbtide.work.progress import Phase
from ebbtide.work.runs.code import check_destination, uploaded
from ebbtide.work.runs.existing import cancel
from ebbtide.work.runs.folder import read_folder
from ebbtide.work.runs.run import check, plan, user_of
from ebbtide.work.tasks import CodeIn

_MAIN: Final = "__main__"
_CALLED: Final = "EBBTIDE_FUNCTION"
"""Environment variable of the pod with the called function, as `module:name`."""


@dataclass(frozen=True, slots=True)
class Run:
    """A created run.

    Attributes:
        namespace: namespace of its Job.
        uid: UID of its Job, which another one of that name does not have.
    """

    name: str
    namespace: str
    uid: str
    _api: Api = field(repr=False)

    def wait(self, on_line: Callable[[str], object] = print) -> bool:
        """Wait for its end, and return whether it completed.

        Args:
            on_line: called with each line of its logs.

        Raises:
            ClusterError: it was deleted or replaced, or the API server stays unresponsive.
        """
        stream = LogStream(self._api, self.namespace, on_line)
        _, progress = submission.follow(
            self._api, self.name, self.namespace, lambda _: None, lambda _: None, stream.add, uid=self.uid
        )
        stream.end()
        return progress.phase is Phase.COMPLETED

    def cancel(self) -> None:
        """Delete its Job with its pods.

        Raises:
            ClusterError: it was deleted or replaced before, or deleting it is forbidden.
        """
        cancel(self._api, self.name, self.namespace, self.uid)


def run(
    function: Callable[..., object],
    *arguments: Any,
    profile: Profile | None = None,
    context: str = "",
    replace: bool = False,
    setup: str = "",
    code_in: CodeIn | str | None = None,
    **fields: Any,
) -> Run:
    """Create a Job that calls a function with the code of its folder.

    The folder is that of the function's module, or of its package. The image needs the function's imports,
    and not Ebbtide: import it where the call is, below `if __name__ == "__main__":`.

    Args:
        *arguments: its arguments, as JSON has them.
        profile: the cluster's profile. Default: `EBBTIDE_PROFILE`, or the namespace's.
        context: the kubeconfig's context; empty for the current one.
        replace: whether an existing Job of that name is deleted.
        setup: commands of the shell before the call.
        code_in: storage of the code, as of `ebbtide run --code-in`; default: an image if the namespace's team
            has a registry, else a ConfigMap, or for much code the team's bucket.
        **fields: fields of the Job, such as `pool`, `gpus`, `image`, `queue`, `namespace`, `name`; see
            `Task`.

    Raises:
        WorkloadError: the function cannot be imported in a pod, or the Job cannot run as described.
        ClusterError: the cluster rejects the Job, or is unreachable; nothing was created.
    """
    root, module = _located(function)
    command = command_of(function, module, arguments)
    called = f"{module}:{function.__name__}"
    if os.environ.get(_CALLED) == called:
        raise WorkloadError(
            f"The pod imports {module}, which calls run again and would create a Job for each Job: write the "
            'call below `if __name__ == "__main__":`.'
        )
    fields = {**fields, "env": {**fields.get("env", {}), _CALLED: called}}
    api = Api.of_user(context)
    if not fields.get("queue"):
        fields = {**fields, "namespace": fields.get("namespace") or api.namespace}
    cluster = profile or Profile.load(namespace=fields.get("namespace", ""), context=context)
    chosen = {key: fields[key] for key in ("pool", "queue", "namespace") if fields.get(key)}
    if not fields.get("image"):
        fields = {**fields, "image": cluster.default_image(**chosen)}
    where, folder = _storage(code_in), read_folder(root)
    made = plan(cluster, folder, user_of(api), {}, setup=setup, code_in=where, command=command, **fields)
    namespace = made.job["metadata"].get("namespace") or api.namespace
    earlier = check(api, made, namespace, replace=replace)
    check_destination(api, cluster, namespace)
    manifest, _ = uploaded(made.job, cluster, made.storage, folder, chosen)
    created = submission.submit(api, manifest, *made.dependents, earlier=earlier)
    return Run(manifest["metadata"]["name"], namespace, created["metadata"]["uid"], api)


def command_of(function: Callable[..., object], module: str, arguments: Sequence[Any]) -> list[str]:
    """Return the command that calls a function of a module with JSON arguments.

    Raises:
        WorkloadError: it is not at the module's top level, or an argument is no JSON.
    """
    name = getattr(function, "__qualname__", "")
    if not name.isidentifier():
        raise WorkloadError(
            f"{name or function} is not a function at the top level of a module, and a pod cannot import it: "
            "move it there."
        )
    try:
        text = json.dumps(arguments)
    except (TypeError, ValueError) as error:
        raise WorkloadError(
            f"The arguments of {name} are passed to the pod as JSON: {error}. Pass numbers, texts, lists and "
            "dicts, or the path of a file."
        ) from None
    call = f"import json, sys; from {module} import {name}; {name}(*json.loads(sys.argv[1]))"
    return ["python", "-c", call, text]


def _storage(code_in: CodeIn | str | None) -> CodeIn | None:
    try:
        return CodeIn(code_in) if code_in else None
    except ValueError:
        names = ", ".join(item.value for item in CodeIn)
        raise WorkloadError(f"code_in is {code_in!r}: write one of {names}.") from None


def _located(function: Callable[..., object]) -> tuple[Path, str]:
    """Return the folder of a function's code, and the name of its module there."""
    module = inspect.getmodule(function)
    file = getattr(module, "__file__", None)
    if module is None or file is None:
        raise WorkloadError(
            f"{function} is in no file, as in an interactive session, and a pod cannot import it: write it "
            "to a module."
        )
    path = Path(file).resolve()
    if module.__name__ == _MAIN:
        return path.parent, path.stem
    levels = module.__name__.count(".") + (path.name == "__init__.py")
    return path.parents[levels], module.__name__
