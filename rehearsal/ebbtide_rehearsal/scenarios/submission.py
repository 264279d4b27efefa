"""Objects for the API server from a scenario's steps."""

import copy
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import yaml

import ebbtide
from ebbtide.declaration.project.yaml_file import load_all
from ebbtide.placement import Profile
from ebbtide.work.jobs import job
from ebbtide.work.sweeps import sweep
from ebbtide_rehearsal.control_plane.stages import EXIT_CODE, RUNS, RUNS_FOR
from ebbtide_rehearsal.failures import RehearsalError
from ebbtide_rehearsal.scenarios.model import EveryPool, Submit
from ebbtide_rehearsal.scenarios.observer import SUBMITTED_LABEL

Object = dict[str, Any]

_IMAGE: Final = "registry.k8s.io/pause:3.10"  # never pulled: no container runs here


def submitted(step: Submit, profile: Profile, base_directory: Path) -> Iterator[Object]:
    """Return the objects of a step.

    Args:
        step: the submission.
        profile: the cluster's profile.
        base_directory: the scenario's directory.

    Raises:
        WorkloadError: the profile rejects it.
        YamlFileError: the file of objects cannot be read.
        RehearsalError: the program fails, or the step has pod settings and its objects have no pods.
    """
    for number in range(step.count):
        objects = _objects(step, profile, base_directory)
        if _annotations(step) and not any(map(_pods, objects)):
            kinds = ", ".join(dict.fromkeys(str(manifest.get("kind")) for manifest in objects))
            raise RehearsalError(
                "runsFor, exitCode and process apply to pods, and there are no pods in "
                f"{kinds or 'nothing'}. Write the annotations in the pod template, such as {RUNS_FOR}."
            )
        for manifest in objects:
            marked = _marked(manifest, step)
            if step.count > 1:
                marked["metadata"]["name"] += f"-{number}"
            yield marked


def on_every_pool(step: EveryPool, profile: Profile) -> Iterator[Object]:
    """Return a short Job for each work pool; pools that run only queued work use the queue of any team."""
    for pool in profile.pools:
        if pool.role == "system":
            continue
        queue = profile.queue(pool.queues[0]) if pool.capacity == "queued" else None
        manifest = job(
            profile,
            name=f"try-{pool.name}",
            image=_IMAGE,
            cpu="100m",
            memory="64Mi",
            gpus=pool.accelerator.most if pool.accelerator and pool.accelerator.slice_nodes == 1 else 0,
            pool="" if queue else pool.name,
            queue=queue.name if queue else "",
            namespace=queue.local_queues[0].namespace if queue else "",
        )
        yield _marked(manifest, Submit(do="submit", job={}, runs_for=step.runs_for))


def _objects(step: Submit, profile: Profile, base_directory: Path) -> list[Object]:
    if step.manifests is not None:
        return [document for document in load_all(base_directory / step.manifests) if document]
    if step.program is not None:
        printed = _printed(base_directory / step.program, profile)
        return [document for document in yaml.safe_load_all(printed) if document]
    fields: Any = {"image": _IMAGE, **(step.job or step.sweep or {})}
    if step.job is not None:
        return [job(profile, **fields)]
    return [sweep(profile, fields.pop("grid", {}), **fields)]


def _printed(program: Path, profile: Profile) -> str:
    """Return the output of a program that reads the profile.

    Raises:
        RehearsalError: the program fails; with the last lines of its output.
    """
    package = Path(ebbtide.__file__).parent.parent
    environment = os.environ | {"EBBTIDE_PROFILE": profile.json(), "PYTHONPATH": str(package)}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - the user's own
    if done.returncode:
        raise RehearsalError(f"{program} fails: {''.join(done.stderr.strip().splitlines()[-1:])}")
    return done.stdout


def _marked(manifest: Object, step: Submit) -> Object:
    marked = copy.deepcopy(manifest)
    metadata = marked.setdefault("metadata", {})
    metadata.setdefault("labels", {})[SUBMITTED_LABEL] = "true"
    if step.namespace:
        metadata.setdefault("namespace", step.namespace)
    for pod in _pods(marked):
        pod.setdefault("metadata", {}).setdefault("annotations", {}).update(_annotations(step))
    return marked


def _annotations(step: Submit) -> dict[str, str]:
    """Return the pod annotations of a step."""
    annotations = {
        RUNS_FOR: None if step.runs_for is None else f"{step.runs_for:g}",
        EXIT_CODE: None if step.exit_code is None else str(step.exit_code),
        RUNS: "process" if step.process else None,
    }
    return {key: value for key, value in annotations.items() if value is not None}


def _pods(part: Any) -> list[Object]:
    """Yield the pods and pod templates in an object, at any depth."""
    if isinstance(part, list):
        return [pod for item in cast("list[Any]", part) for pod in _pods(item)]
    if not isinstance(part, dict):
        return []
    inside = cast("Object", part)
    spec: Any = inside.get("spec")
    if isinstance(spec, dict) and "containers" in spec:
        return [inside]
    return [pod for item in inside.values() for pod in _pods(item)]
