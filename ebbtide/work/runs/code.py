"""The code in a run's pods: in the image, or an archive in a ConfigMap or a bucket, which a shell unpacks
before the command.
"""

import base64
import gzip
import hashlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import Object
from ebbtide.in_pods.storage import CheckpointError, write_once
from ebbtide.placement import Profile
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.work.errors import WorkloadError
from ebbtide.work.runs.folder import Folder, application, size_text, suffixed
from ebbtide.work.tasks import CodeIn
from ebbtide.work.volumes import MOUNTS_INLINE

DIRECTORY: Final = "/code"
"""Directory of the code in the container, and the command's working directory."""
_LARGEST: Final = 700_000
"""Maximum size in bytes of an archive in a ConfigMap: an object has 1 MiB, and Base64 adds a third
(Kubernetes docs, ConfigMaps, 2026)."""
ARCHIVE: Final = "/ebbtide"
"""Directory of the archive in the container."""
_KEY: Final = "code.tar.gz"
_ARCHIVE, _CODE = "ebbtide-archive", "ebbtide-code"
# An image without tar may still have Python.
_UNPACK: Final = (
    "if command -v tar >/dev/null; then tar -xzf {0} -C {1}; else python3 -m tarfile -e {0} {1}; fi\n"
).format(f"{ARCHIVE}/{_KEY}", DIRECTORY)
_ACCOUNT: Final = "worker"
"""The team's service account (`ebbtide.placement.derive`)."""
_GOOGLE_IDENTITY: Final = "iam.gke.io/gcp-service-account"
_AZURE_IDENTITY: Final = "azure.workload.identity/client-id"
"""Annotations of a service account that acts as an identity of the cloud (GKE docs, workload-identity;
azure-aks-docs, workload-identity-overview, 2026)."""
_CLOUDS: Final = by_cloud(gke="Google Cloud", aks="Azure")
_ADDRESSES: Final = by_cloud(
    gke=re.compile(r"[a-z0-9-]+-docker\.pkg\.dev/(?P<project>[a-z0-9./-]+)/[a-z0-9-]+|gs://[a-z0-9-]+"),
    aks=re.compile(r"[a-z0-9]+\.azurecr\.io|abfss://[a-z0-9-]+@[a-z0-9]+\.dfs\.core\.windows\.net"),
)
"""Addresses of registries and buckets, as `ebbtide.placement.derive` forms them."""
_LOCAL: Final = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?/.*")
"""A registry on the user's machine."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Storage of a run's code.

    Attributes:
        address: repository of the image, or the folder of the archive in the team's bucket, by the code's
            digest; empty for a ConfigMap.
    """

    kind: CodeIn
    address: str = ""


def storage_of(profile: Profile, namespace: str, folder: Folder, code_in: CodeIn | None) -> Storage:
    """Return the storage of a run's code: the given one, or an image if the namespace's team has a registry,
    and without it a ConfigMap, or for more than it can hold the team's bucket.

    Raises:
        WorkloadError: the team does not have the given one.
    """
    team = profile.team_of(namespace)
    registry, bucket = (team.registry, team.bucket) if team else ("", "")
    if code_in is None:
        mounts = team and bucket and (MOUNTS_INLINE[profile.cloud] or team.claim_kind == "bucket")
        too_large = mounts and not registry and len(compressed(folder)) > _LARGEST
        code_in = CodeIn.IMAGE if registry else CodeIn.BUCKET if too_large else CodeIn.CONFIG_MAP
    match code_in:
        case CodeIn.CONFIG_MAP:
            return Storage(code_in)
        case CodeIn.IMAGE:
            address, lacks, field = registry, "registry for an image", "registry"
            own = application(folder.root.name)
        case CodeIn.BUCKET:
            address, lacks, field = bucket, "bucket for an archive", "volume: {}"
            own = f"code/{hashlib.sha256(folder.archive()).hexdigest()}"
    if not address:
        raise WorkloadError(
            f"Namespace {namespace} has no {lacks} of the code: declare `{field}` for its team, or use "
            "--code-in config-map."
        )
    return Storage(code_in, f"{address}/{own}")


def uploaded(
    job: Object,
    profile: Profile,
    storage: Storage,
    folder: Folder,
    chosen: Mapping[str, str],
    on_copied: Callable[[int, int], object] = lambda _copied, _total: None,
) -> tuple[Object, str]:
    """Write a run's code to its registry or bucket, unless that has it; return the Job with the image, and a
    line that names what was written.

    Args:
        job: the Job, whose container has the base image.
        chosen: `pool` or `queue` of the Job, and `namespace`, which determine the platform of its image.
        on_copied: called with copied and total bytes of the base image's layers, if they are copied.

    Raises:
        ProfileError: the pools of the Job's queue have several architectures.
        RegistryError: the registry or the base image cannot be used.
        WorkloadError: the bucket cannot be used, or a library is not installed.
    """
    if storage.kind is CodeIn.CONFIG_MAP:
        return job, ""
    if storage.kind is CodeIn.IMAGE:
        # The extra `registry`.
        from ebbtide.work.registry import code_image, push, user_credentials  # noqa: PLC0415

        base, layer = _container(job)["image"], folder.archive(DIRECTORY.lstrip("/"))
        architecture = profile.architecture(**chosen)
        image = code_image(base, storage.address, layer, user_credentials, architecture)
        push(image, user_credentials, on_copied)
        return _with_pod(job, containers=[{**_container(job), "image": image.name}]), f"Image: {image.name}"
    # It warns on the terminal of each credential that does not exist.
    logging.getLogger("azure.identity").setLevel(logging.ERROR)
    try:
        new = write_once(f"{storage.address}/{_KEY}", compressed(folder))
    except CheckpointError as error:
        raise WorkloadError(f"The code was not uploaded. {error}") from None
    return job, f"Archive: {storage.address}{'' if new else ', which has it already'}"


def check_destination(api: Api, profile: Profile, namespace: str) -> None:
    """Check that the registry and the bucket that a profile names can be those of the team.

    The profile is a ConfigMap of the team's namespace, and a policy of the stack keeps members from changing
    it. Without that policy, such as on a cluster that an earlier Ebbtide created, the team's service account,
    which no member may change, still names the cloud, and on Google Cloud the registry's
    project.

    Raises:
        WorkloadError: they cannot.
        ApiError: the API server does not answer.
    """
    team = profile.team_of(namespace)
    if team is None or not (team.registry or team.bucket):
        return
    account: Object = api.find(f"/api/v1/namespaces/{namespace}/serviceaccounts/{_ACCOUNT}") or {}
    annotations: Object = account.get("metadata", {}).get("annotations") or {}
    email: str = annotations.get(_GOOGLE_IDENTITY, "")
    cloud = CloudKind.GKE if email else CloudKind.AKS if _AZURE_IDENTITY in annotations else profile.cloud
    project = email.partition("@")[2].removesuffix(".iam.gserviceaccount.com")
    for kind, address in (("registry", team.registry), ("bucket", team.bucket)):
        if address and not _is_of_team(address, cloud, project):
            place = f"the project {project} of Google Cloud" if project else _CLOUDS[cloud]
            raise WorkloadError(
                f"The placement profile of namespace {namespace} names the {kind} {address}, which is not "
                f"in {place}, the team's. Its owner would get the code, so nothing was written or created. "
                "Ask the owner of the stack who changed the profile; `ebbtide up` restores it."
            )


def _is_of_team(address: str, cloud: CloudKind, project: str) -> bool:
    """Return whether an address is one of the cloud; of a registry, whether it is in the project if that is
    known. A bucket's name has no project."""
    if _LOCAL.fullmatch(address):
        return True
    found = _ADDRESSES[cloud].fullmatch(address)
    if found is None:
        return False
    # A domain-scoped project, acme.example:ml, is acme.example/ml here, and ml.acme.example in an e-mail.
    named = found.groupdict().get("project")
    return not (named and project) or ".".join(reversed(named.split("/"))) == project


def compressed(folder: Folder) -> bytes:
    """Return a folder's compressed archive."""
    return gzip.compress(folder.archive(), mtime=0)


def with_directory(job: Object) -> Object:
    """Return a Job with an empty directory for its code, which the shell unpacks there."""
    return _with_volumes(job, [{"name": _CODE, "emptyDir": {}}], [{"name": _CODE, "mountPath": DIRECTORY}])


def in_config_map(job: Object, folder: Folder) -> tuple[Object, Object]:
    """Return a Job whose pods unpack the folder to `/code`, and the ConfigMap with it.

    The ConfigMap has a name of its own, and should have the Job as its owner.

    Raises:
        WorkloadError: the code is too large for a ConfigMap.
    """
    archive = compressed(folder)
    if len(archive) > _LARGEST:
        raise WorkloadError(
            f"The code in {folder.root} has {size_text(len(archive))} compressed, and a ConfigMap can hold "
            f"{size_text(_LARGEST)}. The largest files: {folder.largest()}. List files that the command does "
            "not read in .dockerignore, or use the team's bucket (--code-in bucket) or registry."
        )
    # That of an earlier Job of the name is deleted with it, later.
    metadata: Object = {"name": suffixed(f"{job['metadata']['name']}-code")}
    if "namespace" in job["metadata"]:
        metadata["namespace"] = job["metadata"]["namespace"]
    labels = job["metadata"].get("labels")
    config_map: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, **({"labels": labels} if labels else {})},
        "immutable": True,
        "binaryData": {_KEY: base64.b64encode(archive).decode()},
    }
    volumes: list[Object] = [{"name": _ARCHIVE, "configMap": {"name": metadata["name"]}}]
    mounts = [{"name": _ARCHIVE, "mountPath": ARCHIVE, "readOnly": True}]
    return with_directory(_with_volumes(job, volumes, mounts)), config_map


def in_shell(job: Object, setup: str, *, unpacks: bool) -> Object:
    """Return a Job whose container runs a shell in the code's directory, and the command in its place.

    Args:
        job: the Job, with a command.
        setup: commands of the shell before the command; the pod fails if one fails.
        unpacks: whether the shell unpacks the archive first.
    """
    # Kubernetes reads $(NAME) as a reference to a variable, and $$ as $.
    prepared = setup.replace("$", "$$") + "\n" if setup else ""
    script = (_UNPACK if unpacks else "") + prepared + 'exec "$@"'
    container = _container(job)
    words = [*container["command"], *container.get("args", ())]
    if unpacks or setup:
        container = {**container, "command": ["sh", "-ec", script, "sh"], "args": words}
    return _with_pod(job, containers=[{**container, "workingDir": DIRECTORY}])


def _with_volumes(job: Object, volumes: Sequence[Object], mounts: Sequence[Object]) -> Object:
    pod, container = job["spec"]["template"]["spec"], _container(job)
    mounted = {**container, "volumeMounts": [*container.get("volumeMounts", ()), *mounts]}
    return _with_pod(job, containers=[mounted], volumes=[*pod.get("volumes", ()), *volumes])


def _container(job: Object) -> Object:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return container


def _with_pod(job: Object, **fields: object) -> Object:
    template: Object = job["spec"]["template"]
    pod = {**template["spec"], **fields}
    return {**job, "spec": {**job["spec"], "template": {**template, "spec": pod}}}
