"""Cancel an existing workload, or run it again."""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import Object, items_of, phase_of, text
from ebbtide.placement.profile import QUEUE_LABEL
from ebbtide.text import and_list, several
from ebbtide.work.arguments import is_label
from ebbtide.work.errors import ClusterError, WorkloadError, answered, explained
from ebbtide.work.evidence import JOB_UID, WORKLOAD
from ebbtide.work.kinds import EXPERIMENT, JOB, PIPELINE_RUN, TRAIN_JOB, Kind, NoWorkloadError, kind_of
from ebbtide.work.progress import Phase, progress
from ebbtide.work.submission import check_same, remove_unowned, submit, take_snapshot
from ebbtide.work.volumes import move_outputs

RERUN_OF: Final = "ebbtide.dev/rerun-of"
"""Annotation with the name of the first of several runs."""
_LENGTH: Final = 52
"""Maximum length of a new name, which leaves room for the suffixes of pods."""
_SERVER_LABELS: Final = re.compile(
    r"controller-uid|job-name|(batch\.kubernetes\.io|kueue\.x-k8s\.io)/.*|kubectl\.kubernetes\.io/last-applied-.*"
)
"""Labels and annotations of pod templates that controllers set."""
_PLACED: Final = ("nodeSelector", "tolerations", "affinity", "schedulingGates")
"""Fields of a pod that Kueue changes at admission (kueue, pkg/podset, 0.19)."""
_SERVICE: Final = ("clusterIP", "publishNotReadyAddresses", "selector", "ports")
_TERMINATED: Final = {"spec": {"activeDeadlineSeconds": 0}}
"""The patch by which Kubeflow Pipelines ends a run (kubeflow/pipelines 2.17,
backend/src/common/util/execution_spec.go, `GetTerminatePatch`)."""


def cancel(api: Api, name: str, namespace: str, uid: str = "") -> str:
    """Delete a workload with its pods, or what an interrupted creation of a Job has left; end a pipeline run,
    whose record stays. Return a sentence about it.

    Args:
        uid: UID of the workload; empty for whichever has the name.

    Raises:
        ClusterError: there is none, another one has the name, deleting it is forbidden, or the API server
            does not respond.
    """
    try:
        kind, name = kind_of(api, name, namespace)
    except NoWorkloadError:
        if left := remove_unowned(api, namespace, name=name):
            return f"Deleted {and_list(left)} in namespace {namespace}, which a creation of Job {name} left."
        raise
    path = f"{kind.path.format(namespace)}/{name}"
    title = f"{kind.name} {name} in namespace {namespace}"
    try:
        snapshot = take_snapshot(api, name, namespace, kind)
        check_same(snapshot, uid)
        if kind is PIPELINE_RUN:
            api.patch(path, _TERMINATED)
        else:
            api.delete(path, uid=snapshot.job["metadata"]["uid"], propagationPolicy="Background")
    except ApiError as error:
        if error.forbidden:
            raise ClusterError(f"You may not cancel the {title}: {error.message}") from None
        raise ClusterError(explained(error)) from None
    if kind is JOB:
        remove_unowned(api, namespace, name=name)
    state = progress(snapshot).phase
    pods = sum(phase_of(pod) in {"Pending", "Running"} for pod in snapshot.pods)
    if state in {Phase.COMPLETED, Phase.FAILED}:
        what = f"It had {state}." if kind is not PIPELINE_RUN else f"It had {state} before."
    else:
        what = f"It was {state}" + (f", with {several(pods, 'pod')}." if pods else ".")
    return f"{'Ended' if kind is PIPELINE_RUN else 'Deleted'} the {title}. {what}"


def rerun(api: Api, name: str, namespace: str, words: Sequence[str] = (), new_name: str = "") -> Object:
    """Create a workload again, under a new name, with the objects that it owns; return the new object.

    Args:
        name: name of the earlier one.
        words: other arguments of its container, or another command if it has no arguments; default: the same.
        new_name: name of the new one; default: the earlier name with the next free number.

    Raises:
        ClusterError: there is no such workload, or the cluster rejects the new one; nothing was created.
        WorkloadError: its kind cannot be run again, or not with other arguments.
    """
    kind, name = kind_of(api, name, namespace)
    if kind is PIPELINE_RUN:
        raise WorkloadError(
            f"{name} is a pipeline run, which Kubeflow Pipelines would not record if it were created here: "
            "clone it in its user interface, or create a run of the same pipeline."
        )
    if words and kind is EXPERIMENT:
        raise WorkloadError(
            f"{name} is an experiment, whose trials have their own arguments: omit the new ones, or create "
            "another experiment."
        )
    if new_name and not is_label(new_name):
        raise WorkloadError(f"--name is {new_name!r}, which is not a valid name of a {kind.name}.")
    with answered():
        return _created_again(api, kind, name, namespace, words, new_name)


def _created_again(
    api: Api, kind: Kind, name: str, namespace: str, words: Sequence[str], new_name: str
) -> Object:
    path = kind.path.format(namespace)
    before = api.get(f"{path}/{name}")
    old: Object = before["metadata"]
    first = text(old, "annotations", RERUN_OF) or name
    new_name = new_name or _free_name(first, {item["metadata"]["name"] for item in api.items(path)})
    item: Object = {
        "apiVersion": before["apiVersion"],
        "kind": before["kind"],
        "metadata": {
            "name": new_name,
            "namespace": namespace,
            "labels": _renamed(old.get("labels"), name, new_name),
            "annotations": {**_own(old.get("annotations")), RERUN_OF: first},
        },
        "spec": deepcopy(before["spec"]),
    }
    if kind is not JOB:
        if kind is TRAIN_JOB:
            _prepare_train_job(item["spec"], words)
        return submit(api, item)
    dependents = _dependents(api, old, namespace, new_name)
    renamed = {old_name: copy["metadata"]["name"] for old_name, copy in dependents.items()}
    _prepare_job(item, words, name, new_name, renamed, _workload(api, old, namespace))
    return submit(api, item, *dependents.values())


def _free_name(first: str, taken: set[str]) -> str:
    number = 2
    while True:
        suffix = f"-{number}"
        name = first[: max(len(first), _LENGTH) - len(suffix)] if len(first) > _LENGTH - 2 else first
        if f"{name}{suffix}" not in taken:
            return f"{name}{suffix}"
        number += 1


def _own(entries: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (entries or {}).items() if not _SERVER_LABELS.fullmatch(key)}


def _workload(api: Api, old: Object, namespace: str) -> Object | None:
    if QUEUE_LABEL not in (old.get("labels") or {}):
        return None
    listed = api.find(WORKLOAD.path.format(namespace), labelSelector=f"{JOB_UID}={old['uid']}")
    return next(iter(items_of(listed)), None)


def _dependents(api: Api, old: Object, namespace: str, new_name: str) -> dict[str, Object]:
    """Return copies of the Services and ConfigMaps that a Job owns, by the name of the original."""
    copies: dict[str, Object] = {}
    for kind, fields in (("Service", ("spec",)), ("ConfigMap", ("data", "binaryData", "immutable"))):
        for item in api.items(f"/api/v1/namespaces/{namespace}/{kind.lower()}s"):
            metadata: Object = item["metadata"]
            if old["uid"] not in {owner["uid"] for owner in metadata.get("ownerReferences") or ()}:
                continue
            name: str = metadata["name"]
            suffix = name.removeprefix(old["name"]) if name.startswith(old["name"]) else f"-{name}"
            copies[name] = {
                "apiVersion": "v1",
                "kind": kind,
                "metadata": {
                    "name": f"{new_name}{suffix}",
                    "namespace": namespace,
                    "labels": _renamed(metadata.get("labels"), old["name"], new_name),
                },
                **{field: item[field] for field in fields if field in item},
            }
            if kind == "Service":
                spec = {field: item["spec"][field] for field in _SERVICE if field in item["spec"]}
                spec["selector"] = _renamed(spec.get("selector"), old["name"], new_name)
                copies[name]["spec"] = spec
    return copies


def _renamed(entries: Mapping[str, str] | None, old: str, new: str) -> dict[str, str]:
    return {key: new if value == old else value for key, value in (entries or {}).items()}


def _prepare_job(
    item: Object,
    words: Sequence[str],
    name: str,
    new_name: str,
    renamed: Mapping[str, str],
    workload: Object | None,
) -> None:
    """Remove from a Job's spec what controllers have set, and insert the new names and arguments."""
    spec: Object = item["spec"]
    for field in ("selector", "manualSelector", "suspend"):
        spec.pop(field, None)
    if QUEUE_LABEL in item["metadata"]["labels"]:
        spec["suspend"] = True
    metadata: Object = spec["template"].get("metadata") or {}
    spec["template"]["metadata"] = {
        "labels": _renamed(_own(metadata.get("labels")), name, new_name),
        "annotations": _own(metadata.get("annotations")),
    }
    pod: Object = spec["template"]["spec"]
    if workload is not None:
        original: Object = workload["spec"]["podSets"][0]["template"]["spec"]
        for field in _PLACED:
            pod.pop(field, None)
        pod.update({field: original[field] for field in _PLACED if field in original})
    _refer(pod, {**renamed, f"{name}-0.{name}": f"{new_name}-0.{new_name}"})
    move_outputs(pod["containers"][0], name, new_name)
    if words:
        _replace_words(pod["containers"][0], words)


def _refer(pod: Object, names: Mapping[str, str]) -> None:
    """Replace names in a pod's subdomain, volumes and variables."""
    if "subdomain" in pod:
        pod["subdomain"] = names.get(pod["subdomain"], pod["subdomain"])
    for volume in pod.get("volumes") or ():
        source: Object = volume.get("configMap") or {}
        if source.get("name") in names:
            source["name"] = names[source["name"]]
    for container in pod["containers"]:
        for variable in container.get("env") or ():
            if variable.get("value") in names:
                variable["value"] = names[variable["value"]]


def _prepare_train_job(spec: Object, words: Sequence[str]) -> None:
    for field in ("runtimePatches", "podTemplateOverrides"):
        patches: Sequence[dict[str, Any]] = spec.get(field) or ()
        if patches:
            spec[field] = [patch for patch in patches if "kueue" not in str(patch.get("manager", ""))]
    if words:
        _replace_words(spec.setdefault("trainer", {}), words)


def _replace_words(container: Object, words: Sequence[str]) -> None:
    container["args" if container.get("args") else "command"] = list(words)
