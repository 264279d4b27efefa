"""Volumes of a task's pods that outlive them: its claim, the folder of its outputs, and buckets."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from ebbtide.placement import Profile, TeamProfile
from ebbtide.values.cloud_kind import by_cloud
from ebbtide.values.paths import Object
from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.tasks import Task

OUTPUTS: Final = "EBBTIDE_OUTPUTS"
"""Environment variable with the path of the outputs in the container."""
_CHECKPOINTS, _OUTPUTS = "checkpoints", "outputs"
_ADDRESSES: Final = by_cloud(
    gke=(
        re.compile(r"gs://(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?:/(?P<folder>.*))?"),
        "gs://BUCKET/FOLDER",
    ),
    aks=(
        re.compile(
            r"abfss?://(?P<bucket>[a-z0-9-]{3,63}@[a-z0-9]{3,24}\.dfs\.core\.windows\.net)(?:/(?P<folder>.*))?"
        ),
        "abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER",
    ),
)
"""Addresses of folders in buckets that pods of a cloud can mount, each with its form for messages (Cloud
Storage docs, buckets, names; Azure Storage docs, data-lake-storage-introduction-abfs-uri, 2026)."""
MOUNTS_INLINE: Final = by_cloud(gke=True, aks=False)
"""True if a pod may mount a bucket without a claim. On AKS it may not: with some attributes, the driver
mounts with the identity of the node (see `ebbtide.placement.member_policy`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A volume of a pod, mounted in its container.

    Attributes:
        name: name of the volume; several mounts may share one.
        source: the volume's source, as in a pod spec.
        folder: folder of the volume that is mounted; empty for all of it. It may refer to variables of the
            container, as `$(NAME)`.
        read_only: whether the container cannot write to it.
    """

    name: str
    source: Mapping[str, Any]
    path: str
    folder: str = ""
    read_only: bool = False

    def manifest(self) -> Object:
        """Return the container's volume mount."""
        key = "subPathExpr" if "$(" in self.folder else "subPath"
        return {
            "name": self.name,
            "mountPath": self.path,
            **({key: self.folder} if self.folder else {}),
            **({"readOnly": True} if self.read_only else {}),
        }


def outputs_folder(name: str) -> str:
    """Return the folder of a Job's outputs on its volume, or in its bucket."""
    return f"outputs/{name}"


def mounts_of(profile: Profile, task: Task, namespace: str, problems: Problems) -> tuple[Mount, ...]:
    """Return the mounts of a task, and report outputs without storage, and buckets that cannot be mounted.

    Outputs are on the task's own claim, else on that of the namespace's team, else in the team's bucket.
    """
    mounts: list[Mount] = []
    team = profile.team_of(namespace)
    if task.volume:
        mounts.append(Mount(name=_CHECKPOINTS, source=claim(task.volume), path=task.mount_path))
    if task.outputs:
        source = _storage(profile, task, team)
        problems.check(source, _no_storage(profile, task, namespace, team))
        name = _shared_name(mounts, source, _OUTPUTS)
        mounts.append(Mount(name=name, source=source, path=task.outputs, folder=outputs_folder(task.name)))
    for number, (address, path) in enumerate(task.mounts.items()):
        with problems.collecting():
            source, folder = _bucket(profile, team, address)
            name = _shared_name(mounts, source, f"mount-{number}")
            mounts.append(Mount(name=name, source=source, path=path, folder=folder, read_only=True))
    return tuple(mounts)


def _shared_name(mounts: Iterable[Mount], source: Object, name: str) -> str:
    """Return the name of a volume: that of an earlier mount of the same claim, which the kubelet mounts once
    for each pod."""
    return next((mount.name for mount in mounts if mount.source == source), name)


def claim(name: str) -> Object:
    """Return the source of a volume that is a claim."""
    return {"persistentVolumeClaim": {"claimName": name}}


def _storage(profile: Profile, task: Task, team: TeamProfile | None) -> Object:
    """Return the source of the volume for outputs; empty without one."""
    if name := task.volume or (team.claim if team else ""):
        return claim(name)
    if team and team.bucket and MOUNTS_INLINE[profile.cloud] and profile.bucket_driver:
        attributes = {"bucketName": team.bucket.removeprefix("gs://"), "mountOptions": "implicit-dirs"}
        return {"csi": {"driver": profile.bucket_driver, "volumeAttributes": attributes}}
    return {}


def _bucket(profile: Profile, team: TeamProfile | None, address: str) -> tuple[Object, str]:
    """Return the source of the volume for an address, and the folder in it.

    Raises:
        WorkloadError: it is not an address of the cluster's cloud, or the cluster cannot mount it.
    """
    pattern, form = _ADDRESSES[profile.cloud]
    found = pattern.fullmatch(address)
    folder = (found["folder"] or "").strip("/") if found else ""
    if found is None or ".." in PurePosixPath(folder).parts:
        raise WorkloadError(
            f"mounts has {address}, and pods of cluster {profile.cluster} mount folders as {form}: write "
            "such an address."
        )
    if not MOUNTS_INLINE[profile.cloud]:
        own = team.bucket if team and team.claim_kind == "bucket" else ""
        if team is None or own.partition("://")[2] != found["bucket"]:
            raise WorkloadError(
                f"mounts has {address}, and on AKS pods can only mount the bucket that is the volume of "
                f"their team{f', {own}' if own else ', which has none (declare `volume: {}`)'}: copy the "
                "data there, or read the address in the program, with adlfs."
            )
        return claim(team.claim), folder
    if not profile.bucket_driver:
        raise WorkloadError(
            f"mounts has {address}, and cluster {profile.cluster} may not have the driver that mounts "
            "buckets: declare `volume: {}` for a team. If its profile is of an older Ebbtide, write it again."
        )
    attributes = {"bucketName": found["bucket"], "mountOptions": "implicit-dirs"}
    return {
        "csi": {"driver": profile.bucket_driver, "readOnly": True, "volumeAttributes": attributes}
    }, folder


def _no_storage(profile: Profile, task: Task, namespace: str, team: TeamProfile | None) -> str:
    shown = f"Namespace {namespace}" if namespace else "The namespace, which is not named,"
    where = f"team {team.name}" if team else "its team"
    return (
        f"{shown} has no volume in the profile of cluster {profile.cluster}, and what is written to "
        f"{task.outputs} (outputs) would be lost with the pod: name a claim with volume (--volume), or "
        f"declare `volume: {{}}` for {where}."
    )


def by_index(mounts: Iterable[Mount], variable: str) -> tuple[Mount, ...]:
    """Return mounts in which each index has a folder of its own to write to.

    Args:
        variable: variable of the container with the index.
    """
    return tuple(
        replace(mount, folder=f"{mount.folder}/$({variable})")
        if mount.folder and not mount.read_only
        else mount
        for mount in mounts
    )


def move_outputs(container: Object, name: str, new_name: str) -> None:
    """Change the folder of a container's outputs to that of another Job."""
    old, new = outputs_folder(name), outputs_folder(new_name)
    for mount in container.get("volumeMounts") or ():
        for key in ("subPath", "subPathExpr"):
            folder = mount.get(key, "")
            if folder == old or folder.startswith(f"{old}/"):
                mount[key] = new + folder.removeprefix(old)
