"""Steps of `ebbtide adopt`: find the cluster, online or in files; prove and write its declaration."""

import tempfile
import textwrap
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, cast

import yaml

from ebbtide.analysis.device_plugins import DAEMON_SETS, of_others
from ebbtide.analysis.policy.check import check, policy_of
from ebbtide.analysis.policy.settings import KEY, Level
from ebbtide.analysis.preview.stack_files import StackFileError, StackFiles, read_stack, record_stack
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import masked
from ebbtide.clients.clouds.connect import aks_clusters, aks_schedules, gke_clusters
from ebbtide.clients.clouds.interfaces import CloudApiError
from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import items_of, part, parts, text
from ebbtide.declaration.model.labels_and_taints import AGENT_POOL, NODE_POOL
from ebbtide.declaration.project.adopt_file import (
    AdoptedResource,
    default_file,
    read_adopt_file,
    write_adopt_file,
)
from ebbtide.declaration.project.configuration import stack_file
from ebbtide.declaration.project.extends import DECLARATION
from ebbtide.operations.adopting import azure, google, sources
from ebbtide.operations.adopting.found import (
    Adoption,
    AdoptionError,
    FieldRow,
    Found,
    LeftOut,
    UpdateRow,
    merged,
)
from ebbtide.operations.adopting.kueue import AdoptedQueues, adopt_queues, adopted_objects
from ebbtide.operations.adopting.kueue_objects import COMMAND, COMPUTE_CLASS_VERSION, ObjectDifference
from ebbtide.operations.adopting.proof import adopt
from ebbtide.text import and_list, did_you_mean, or_list
from ebbtide.values.cloud_kind import by_cloud
from ebbtide.values.documents import DocumentPart
from ebbtide.values.kueue_api import API_VERSION, GROUP

VERSION: Final = "ebbtide.dev/adopt/v1"
"""Version of the document of `ebbtide adopt --format json`."""
_OWNER: Final = "ebbtide-owner"
_EXCEPTIONS: Final = "exceptions"
_WIDTH: Final = 110
_AS_ADOPTED: Final = "as it was when the cluster was adopted"
_CLOUD_FIELDS: Final = by_cloud(gke=google.cloud_fields, aks=azure.cloud_fields)
_LABELS: Final = by_cloud(gke="resourceLabels", aks="tags")


@dataclass(frozen=True, slots=True)
class Request:
    """The cluster to adopt, and how.

    Attributes:
        root: the directory of `Pulumi.yaml`.
        files: documents to read; empty to read the cluster itself.
        cluster: the cluster's name; None for the only one in the files.
        context: the kubeconfig's context in which objects in the cluster are read; None for the files' alone.
        location: its zone or region; None for any.
        project: its project on Google Cloud, with which it is read.
        subscription: its subscription on Azure, with which it is read.
        resource_group: its resource group on Azure; None for any.
        owner: the declaration's owner; None for the label of the cluster, or its project.
        pools_only: whether the cluster stays with its owner.
        overwrite: whether an existing file of the stack is replaced.
    """

    stack: str
    root: Path
    files: Sequence[Path] = ()
    cluster: str | None = None
    context: str | None = None
    location: str | None = None
    project: str | None = None
    subscription: str | None = None
    resource_group: str | None = None
    owner: str | None = None
    pools_only: bool = False
    overwrite: bool = False

    @property
    def stack_file(self) -> Path:
        """The stack's file."""
        settings = _document(self.root / "Pulumi.yaml") or _document(self.root / "Pulumi.yml")
        return stack_file(self.root, settings, self.stack)


class ResourceName(DocumentPart):
    """A resource of the stack's program."""

    type: str
    """Type token."""
    name: str
    """Logical name."""


class AdoptionReport(DocumentPart):
    """An adopted cluster: its declaration, and the proof that it is the same cluster."""

    version: Literal["ebbtide.dev/adopt/v1"] = VERSION
    """Version of the document format."""
    cluster: str
    """Name of the cluster."""
    place: str
    """Its project or subscription, and its location."""
    declaration: Mapping[str, Any]
    """The value of `ebbtide:cluster`."""
    fields: tuple[FieldRow, ...]
    """Every field that was read."""
    updates: tuple[UpdateRow, ...]
    """Inputs that the first update changes."""
    created: tuple[ResourceName, ...]
    """Resources that the first update creates."""
    left_out: tuple[LeftOut, ...]
    """Parts of the cluster that are not adopted."""
    queues: tuple[ObjectDifference, ...]
    """Differences of Kueue's objects."""
    drivers: tuple[str, ...]
    """Drivers and device plugins of GPUs that others install on its nodes, as sentences; empty without a
    document of its DaemonSets."""
    exceptions: tuple[Mapping[str, str], ...]
    """Exceptions of the policy that the stack's file has for the cluster as it is."""
    output_only: Mapping[str, int]
    """Numbers of attributes that no program sets, by resource."""
    written: tuple[str, ...]
    """Names of the files that were written."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """A proved adoption.

    Attributes:
        place: its account and location.
        adoption: the declaration and its proof.
        declaration: the declaration with the queues and teams of Kueue's objects.
        queues: Kueue's objects as the declaration has them; None without any.
        drivers: drivers and device plugins that others install on its nodes, as sentences.
        exceptions: violations of mandatory rules of the policy that the cluster has, as exceptions.
        resources: type, logical name and import id of each adopted resource, and `found` of Kueue's objects.
    """

    cluster: str
    place: str
    adoption: Adoption
    declaration: Mapping[str, Any]
    queues: AdoptedQueues | None
    drivers: Sequence[str]
    exceptions: Sequence[Mapping[str, str]]
    resources: Sequence[Mapping[str, Any]]

    def report(self, written: Sequence[Path]) -> AdoptionReport:
        """Return the document of the adoption and of the files that were written."""
        adoption, queues = self.adoption, self.queues
        return AdoptionReport(
            cluster=self.cluster,
            place=self.place,
            declaration=self.declaration,
            fields=tuple(replace(row, value=masked(row.value, row.path)) for row in adoption.fields),
            updates=tuple(
                replace(row, old=masked(row.old, row.path), new=masked(row.new, row.path))
                for row in adoption.updates
            ),
            created=tuple(ResourceName(type=token, name=name) for token, name in adoption.created),
            left_out=(*adoption.left_out, *(queues.left if queues else ())),
            queues=queues.differences if queues else (),
            drivers=tuple(self.drivers),
            exceptions=tuple(self.exceptions),
            output_only=adoption.output_only,
            written=tuple(path.name for path in written),
        )


def find(request: Request) -> Found:
    """Read the cluster, with the user's credentials or from files.

    Raises:
        AdoptionError: it cannot be read; the message has every fault.
        CloudApiError: the cloud rejects the request or does not answer.
    """
    faults = _faults(request)
    found = Found()
    try:
        found = _found(request)
        found = sources.one_cluster(
            found, request.cluster, location=request.location, resource_group=request.resource_group
        )
        if request.context:
            found = merged([found, _in_cluster(request.context, found)])
    except AdoptionError as error:
        faults.append(str(error))
    if faults:
        raise AdoptionError("\n".join(faults))
    return found


def prove(request: Request, found: Found) -> Adopted:
    """Return the declaration of the cluster that `find` found, with the proof. Nothing is written.

    Raises:
        AdoptionError: the cluster cannot be adopted.
        StackFileError: there is no project.
    """
    assert found.cloud  # noqa: S101 - a cluster is of a cloud
    files = _files(request)
    (cluster,) = found.clusters
    labels = cast("Mapping[str, str]", cluster.inputs.get(_LABELS[found.cloud]) or {})
    top = {"name": cluster.name, "owner": request.owner or labels.get(_OWNER) or found.account}
    own = _CLOUD_FIELDS[found.cloud](found)

    def record(declaration: dict[str, Any]) -> Recording:
        return record_stack(files.declaring(declaration))

    adoption = adopt(found, top, own, record, pools_only=request.pools_only)
    queues = adopt_queues(found.objects, adoption.declaration) if found.objects else None
    if queues and not queues.fields.get("queues") and "kueue" in adoption.declaration.get("addons", {}):
        adoption = adopt(found, top, own, record, pools_only=request.pools_only, with_queues=False)
    place = f"{found.account}, {own['location']}"
    declaration, recording = adoption.declaration, adoption.recording
    if queues:
        addons = {**declaration.get("addons", {}), **queues.fields.get("addons", {})}
        declaration = {**declaration, **queues.fields, **({"addons": addons} if addons else {})}
        recording = record(declaration)
    return Adopted(
        cluster.name,
        place,
        adoption,
        declaration,
        queues,
        list(of_others(recording, found.daemon_sets)) if found.daemon_sets else [],
        _exceptions(request, recording),
        (*adoption.resources, *adopted_objects(found.objects, recording)),
    )


def _exceptions(request: Request, recording: Recording) -> list[Mapping[str, str]]:
    """Return the exceptions without which an update of the cluster as it is would be refused."""
    policy = policy_of(_config(_document(request.stack_file)).get(KEY))
    findings = check(recording, read_clusters(recording), read_pools(recording), [], policy)
    return [
        {"rule": finding.rule.id, "resource": finding.subject.name, "reason": _AS_ADOPTED}
        for finding in findings
        if finding.level is Level.MANDATORY and not finding.exception
    ]


def _faults(request: Request) -> list[str]:
    if request.project and request.subscription:
        return ["A cluster is in a project or in a subscription: name one of --project and --subscription."]
    if request.stack_file.exists() and not request.overwrite:
        text = "exists already, and nothing was written. Name another stack, or replace its declaration with"
        return [f"{request.stack_file} {text} --overwrite."]
    return []


def _found(request: Request) -> Found:
    if request.files:
        found = sources.read_files(request.files)
        for option, account in (("--project", request.project), ("--subscription", request.subscription)):
            if account and found.account != account:
                raise AdoptionError(
                    f"The files are of a cluster of {found.account}, and {option} is {account}."
                )
        return found
    if request.cluster and request.project:
        return _live_on_gke(request.project, request.cluster, request.location)
    if request.cluster and request.subscription:
        return _live_on_aks(request.subscription, request.cluster, request.resource_group)
    raise AdoptionError(
        "There is no cluster to read. Name files about it with --from, or the cluster itself with --cluster, "
        "and --project or --subscription."
    )


def _live_on_gke(project: str, name: str, location: str | None) -> Found:
    """Read a GKE cluster with the user's credentials."""
    with _or_a_file(f"gcloud container clusters describe {name} --format json"):
        listed = gke_clusters(project)
    there = [item for item in listed if location in (None, item.get("location"))]
    found = google.read(_named(name, there, f"{project}, {location}" if location else project), project)
    assert found is not None  # noqa: S101 - the API lists clusters
    return found


def _live_on_aks(subscription: str, name: str, group: str | None) -> Found:
    """Read an AKS cluster with the user's credentials."""
    with _or_a_file(f"az aks show --name {name} --output json"):
        listed = aks_clusters(subscription)
        there = [
            item
            for item in listed
            if group is None or f"/resourcegroups/{group}/".lower() in item["id"].lower()
        ]
        chosen = _named(name, there, f"{subscription}, {group}" if group else subscription)
        schedules = [item for cluster in chosen for item in aks_schedules(subscription, cluster["id"])]
    found = azure.read([*chosen, *schedules], subscription)
    assert found is not None  # noqa: S101 - the API lists clusters
    return found


@contextmanager
def _or_a_file(command: str, option: str = "") -> Generator[None]:
    """Raise an `AdoptionError` in place of a refusal, with the command by which the owner reads the same.

    Args:
        option: the option that a file replaces; empty for none.
    """
    try:
        yield
    except (ApiError, CloudApiError) as error:
        if error.status in (401, 403):
            instead = f" instead of {option}" if option else ""
            raise AdoptionError(
                f"{error} Or let the cluster's owner run `{command}`, and name the file with --from{instead}."
            ) from error
        raise


def _in_cluster(context: str, found: Found) -> Found:
    """Read Kueue's objects, GKE's ComputeClasses and the DaemonSets in a cluster.

    Args:
        context: the kubeconfig's context.
        found: the cluster with its pools.

    Raises:
        AdoptionError: they cannot be read, or the context is of another cluster: none of its nodes is of a
            pool that was found.
        ApiError: the API server does not answer.
    """
    api = Api.of_user(context)
    pools = _pools_of_nodes(api)
    known = {pool.name for pool in found.pools} | {it.name.removeprefix("pool ") for it in found.left_out}
    if pools and not pools & known:
        (cluster,) = found.clusters
        raise AdoptionError(
            f"Context {context} is of another cluster than {cluster.name}: its nodes are of "
            f"{and_list(sorted(pools))}. Name the context of {cluster.name}."
        )
    with _or_a_file(COMMAND, "--context"):
        items = list(_objects(api))
    return sources.read_objects({"items": items}, f"context {context}") or Found()


def _pools_of_nodes(api: Api) -> set[str]:
    """Return the names of the node pools of a cluster's nodes; none if nodes must not be listed."""
    try:
        nodes = api.items("/api/v1/nodes")
    except ApiError as error:
        if error.forbidden:
            return set()
        raise
    labels = (part(item, "metadata", "labels") for item in nodes)
    return {str(item[key]) for item in labels for key in (NODE_POOL, AGENT_POOL) if key in item}


def _objects(api: Api) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a cluster that an adoption reads: Kueue's but Workloads, each kind in one version,
    ComputeClasses and DaemonSets."""
    group = api.find(f"/apis/{GROUP}") or {}
    versions = [text(item, "groupVersion") for item in parts(group, "versions")]
    kinds: dict[str, str] = {}
    for version in sorted(versions, key=lambda version: version != API_VERSION):
        for resource in parts(api.get(f"/apis/{version}"), "resources"):
            if "list" in resource["verbs"] and resource["kind"] != "Workload":
                kinds.setdefault(resource["kind"], f"/apis/{version}/{resource['name']}")
    for path in kinds.values():
        yield from api.items(path)
    yield from items_of(api.find(f"/apis/{COMPUTE_CLASS_VERSION}/computeclasses"))
    # Items of a list have no kind, other than those of custom kinds.
    yield from ({**item, "apiVersion": "apps/v1", "kind": "DaemonSet"} for item in api.items(DAEMON_SETS))


def _named(name: str, listed: Sequence[Mapping[str, Any]], place: str) -> list[Mapping[str, Any]]:
    """Return the clusters of a name.

    Raises:
        AdoptionError: there is none.
    """
    names = [str(item.get("name")) for item in listed]
    if name not in names:
        known = f"It has {or_list(dict.fromkeys(names))}" if names else "It has none"
        raise AdoptionError(f"There is no cluster {name} in {place}. {known}{did_you_mean(name, names)}")
    return [item for item in listed if item.get("name") == name]


def _files(request: Request) -> StackFiles:
    """Return the files of the stack, as with a file that declares nothing yet."""
    with tempfile.TemporaryDirectory(prefix="ebbtide-") as directory:
        empty = Path(directory) / request.stack_file.name
        empty.write_text("config: {}\n")
        return read_stack(request.root, request.stack, config_file=empty)


def write_files(request: Request, adopted: Adopted) -> tuple[Path, Path]:
    """Write the stack's file and the file of its resources, and return both.

    Kueue's objects that the latter lists already keep their `found`: an update may have changed them since.

    Raises:
        AdoptFileError: the existing file of resources is unreadable or invalid; nothing was written.
    """
    file, resources = request.stack_file, request.root / default_file(request.stack)
    listed = read_adopt_file(resources) if resources.exists() else ()
    earlier = {(item.type, item.id): item.found for item in listed if item.found}
    new = [AdoptedResource(**item) for item in adopted.resources]
    write_adopt_file(
        resources, [replace(item, found=earlier.get((item.type, item.id), item.found)) for item in new]
    )
    declaration = {**adopted.declaration, "adopt": resources.name}
    document = _document(file)
    config = _config(document)
    config[DECLARATION] = declaration
    if adopted.exceptions:
        policy: dict[str, Any] = config.setdefault(KEY, {})
        policy[_EXCEPTIONS] = [*policy.get(_EXCEPTIONS, ()), *adopted.exceptions]
    document["config"] = config
    file.parent.mkdir(parents=True, exist_ok=True)
    comment = f"# Written by `ebbtide adopt` from {adopted.cluster} in {adopted.place}.\n"
    edited = _edited(file.read_text("utf-8"), config, adopted.exceptions) if file.exists() else ""
    is_whole = yaml.safe_load(edited) == document  # otherwise the file is not a block, or has anchors
    file.write_text(edited if is_whole else comment + _dumped(document), "utf-8")
    return file, resources


def _dumped(document: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    return yaml.safe_dump(
        document, sort_keys=False, width=_WIDTH, default_flow_style=None, allow_unicode=True
    )


def _edited(text: str, config: Mapping[str, Any], exceptions: Sequence[Mapping[str, str]]) -> str:
    """Return a stack's file with another declaration and more exceptions of the policy, and with
    its other lines and comments as they are; empty if `config` is not a block."""
    old: dict[str, Any] = yaml.safe_load(text) or {}
    if _config(old).get(DECLARATION) != config[DECLARATION]:
        text = _with(text, ("config",), DECLARATION, config[DECLARATION])
    if not exceptions:
        return text
    if _block(text, ("config", KEY)) is None:
        return _with(text, ("config",), KEY, config[KEY])
    listed = _block(text, ("config", KEY, _EXCEPTIONS))
    if listed is None:
        return _with(text, ("config", KEY), _EXCEPTIONS, config[KEY][_EXCEPTIONS])
    return _replaced(text, _end(listed), _end(listed), listed.start_mark.column, list(exceptions))


def _block(text: str, keys: Sequence[str]) -> Any:
    """Return the node at keys of a YAML text; None unless it and all above it are blocks."""
    node = cast("Any", yaml.compose(text, yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]
    for key in keys:
        if not isinstance(node, yaml.MappingNode) or node.flow_style:
            return None
        node = next((value for name, value in node.value if name.value == key), None)
    return node if isinstance(node, yaml.CollectionNode) and not node.flow_style else None


def _with(text: str, keys: Sequence[str], key: str, value: Any) -> str:
    """Return a YAML text with a value in the object at keys; empty if that is not a block."""
    holder = _block(text, keys)
    if holder is None:
        return ""
    spans = {name.value: (name.start_mark.line, _end(node)) for name, node in holder.value}
    start, end = spans.get(key, (_end(holder), _end(holder)))
    return _replaced(text, start, end, holder.start_mark.column, {key: value})


def _replaced(text: str, start: int, end: int, column: int, value: Any) -> str:
    lines = text.rstrip("\n").splitlines()
    lines[start:end] = textwrap.indent(_dumped(value), " " * column).splitlines()
    return "\n".join([*lines, ""])


def _end(node: Any) -> int:
    """Return the line after a node's last value, without the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return node.end_mark.line + bool(node.end_mark.column)


def _config(document: Mapping[str, Any]) -> dict[str, Any]:
    config = document.get("config")
    return dict(cast("dict[str, Any]", config)) if isinstance(config, dict) else {}


def _document(file: Path) -> dict[str, Any]:
    """Return the settings of an existing file of the project or the stack."""
    if not file.exists():
        return {}
    try:
        document = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise StackFileError(f"{file} cannot be read: {' '.join(str(error).split())}.") from error
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}
