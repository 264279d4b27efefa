"""The environment of a rehearsal: directory, charts and kustomizations, fake cloud, engine and cluster.

Helm takes a directory of the chart's name, below the working directory, before it asks a repository or a
registry. Kustomize fetches with git, whose configuration redirects a repository's URL to a local one.
Sources: helm.sh/helm/v3@v3.18.6, pkg/action/install.go (`LocateChart`); sigs.k8s.io/kustomize/api@v0.19.0,
internal/git/repospec.go and cloner.go; git-config(1), `url.<base>.insteadOf` and `GIT_CONFIG_COUNT`.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

import certifi
import yaml

from ebbtide.analysis.preview.stack_files import StackFiles
from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal import RehearsalError
from ebbtide_rehearsal.addons import REHEARSED, Revision
from ebbtide_rehearsal.cloud.existing import introduce
from ebbtide_rehearsal.cloud.pools import REGIONS
from ebbtide_rehearsal.cloud.provider import CLUSTER
from ebbtide_rehearsal.cloud.running import CloudSettings, RunningCloud
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.processes import Processes
from ebbtide_rehearsal.engine import Engine
from ebbtide_rehearsal.scenarios.argo import Argo, start
from ebbtide_rehearsal.tools.find import Tools

INDEX: Final = "index.yaml"
"""In a directory of rendered kustomizations: maps addresses, as programs give them, to files beside it."""

_ADDRESS: Final = re.compile(
    r"(?:https://)?(?P<repository>[\w.-]+/[\w.-]+/[\w-][\w.-]*?)(?:\.git)?/{1,2}(?P<path>[^?]+)"
    r"\?(?:.*&)?ref=(?P<ref>[^&]+)"
)
"""A directory of a git repository over https, as kustomize takes it."""


_COMMIT: Final = re.compile(r"[0-9a-f]{40}")

_GIT: Final = """\
#!/bin/sh
for argument; do
  shift
  case "$argument" in
    {commits}) argument="refs/tags/$argument" ;;
  esac
  set -- "$@" "$argument"
done
exec {git} "$@"
"""
_WRITE_INDEX: Final = (
    f"Write an {INDEX} with a line for each kustomization: its address as the program gives it, a colon, and "
    "the name of a file beside it with what `kubectl kustomize ADDRESS` prints."
)
_OF_ITSELF: Final = frozenset(
    {"CSINode", "ComponentStatus", "Endpoints", "EndpointSlice", "Event", "Lease", "Node", "Pod"}
)
"""Kinds that Kubernetes and the cloud manage themselves."""


def indexed(directory: Path) -> dict[str, Path]:
    """Read the index of a directory of rendered kustomizations.

    Raises:
        RehearsalError: it is missing or malformed, or names a missing file.
    """
    try:
        index: Any = yaml.safe_load((directory / INDEX).read_text("utf-8"))
        files = {str(address): directory / name for address, name in index.items()}
    except (OSError, AttributeError, TypeError, yaml.YAMLError) as error:
        raise RehearsalError(
            f"{directory} has no {INDEX} from addresses of kustomizations to files: {error}. {_WRITE_INDEX}"
        ) from None
    if missing := [file.name for file in files.values() if not file.exists()]:
        raise RehearsalError(
            f"{directory / INDEX} names {', '.join(missing)}, which is not in {directory}. {_WRITE_INDEX}"
        )
    if unknown := [address for address in files if not _ADDRESS.fullmatch(address)]:
        raise RehearsalError(
            f"{directory / INDEX}: {', '.join(unknown)} is not a directory of a git repository at a tag or "
            f"commit, as github.com/ORGANIZATION/REPOSITORY/DIRECTORY?ref=TAG. {_WRITE_INDEX}"
        )
    return files


def link_charts(project: Path, tools: Tools, directories: Sequence[Path]) -> None:
    """Link charts into the engine's working directory.

    Args:
        project: the working directory.
        tools: with the charts that the declaration uses.
        directories: directories of unpacked charts, each in a directory of its name.
    """
    charts = {
        address: tools.path(data)
        for add_on in REHEARSED.values()
        for address, data in add_on.charts.items()
        if data in tools.by_name
    }
    for directory in directories:
        charts |= {chart.parent.name: chart.parent.resolve() for chart in directory.glob("*/Chart.yaml")}
    for address, chart in charts.items():
        link = project / address
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(chart, target_is_directory=True)


def mirror(root: Path, tools: Tools, directories: Sequence[Path], programs: Path) -> Mapping[str, str]:
    """Create local git repositories of kustomizations.

    Args:
        root: an empty or missing directory for the repositories.
        tools: with the manifests that the declaration uses.
        directories: directories of rendered kustomizations with an index; these replace the tools'.
        programs: a directory of PATH, for a `git` of this rehearsal.

    Returns:
        Other environment variables with which git fetches from them.

    Raises:
        RehearsalError: an index is invalid, or git is missing or fails.
    """
    trees: defaultdict[Revision, list[tuple[str, Path]]] = defaultdict(list)
    for add_on in REHEARSED.values():
        for data, (revision, path) in add_on.directories.items():
            if data in tools.by_name:
                trees[revision].append((path, tools.path(data)))
    for directory in directories:
        for address, source in indexed(directory).items():
            match = cast("re.Match[str]", _ADDRESS.fullmatch(address))
            trees[Revision(match["repository"], match["ref"])].append((match["path"], source))
    if trees and shutil.which("git") is None:
        raise RehearsalError("Kustomizations are fetched with git, which is not on PATH: install it.")
    for revision, contents in trees.items():
        _commit(root, revision, contents)
    if commits := {revision.ref for revision in trees if _COMMIT.fullmatch(revision.ref)}:
        _fetch_tags(programs, commits)
    return dict(_redirected(root, {revision.repository for revision in trees}))


def _fetch_tags(programs: Path, commits: Iterable[str]) -> None:
    """Write a `git` that fetches the tag of a commit's name.

    The repositories have upstream's files, and not its commits: only the tag can have the name.
    """
    programs.mkdir(exist_ok=True)
    git = programs / "git"
    git.write_text(
        _GIT.format(commits="|".join(sorted(commits)), git=shlex.quote(str(shutil.which("git")))), "utf-8"
    )
    git.chmod(git.stat().st_mode | stat.S_IXUSR)


def _redirected(root: Path, repositories: set[str]) -> Iterator[tuple[str, str]]:
    """Yield git settings, after those that the environment has already."""
    first = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    for number, repository in enumerate(sorted(repositories), first):
        yield f"GIT_CONFIG_KEY_{number}", f"url.{(root / repository).as_uri()}.insteadOf"
        yield f"GIT_CONFIG_VALUE_{number}", f"https://{repository}"
    yield "GIT_CONFIG_COUNT", str(first + len(repositories))


def _commit(root: Path, revision: Revision, contents: Sequence[tuple[str, Path]]) -> None:
    """Tag a commit with directories, or with rendered objects as a kustomization of their own."""
    repository = root / f"{revision.repository}.git"
    tree = root / "trees" / revision.repository / revision.ref
    for path, source in contents:
        target = tree / path
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
            continue
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target / "rendered.yaml")
        (target / "kustomization.yaml").write_text("resources: [rendered.yaml]\n", "utf-8")
    at = (f"--git-dir={repository}", f"--work-tree={tree}")
    _git("init", "--quiet", "--bare", str(repository))
    _git(*at, "add", "--all", "--force", ".")
    identity = ("-c", "user.name=rehearsal", "-c", "user.email=rehearsal@example.com")
    commit = _git(*at, *identity, "commit-tree", "-m", revision.ref, _git(*at, "write-tree"))
    _git(*at, "update-ref", f"refs/tags/{revision.ref}", commit)


def _git(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603
        ["git", *arguments],  # noqa: S607 - the user's, as kustomize runs it
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RehearsalError(f"`git {' '.join(arguments)}` failed: {done.stderr.strip()}")
    return done.stdout.strip()


def inventory(api: Api) -> frozenset[str]:
    """List all objects: kind, namespace and name.

    Raises:
        ApiError: a part of the API does not answer.
    """
    return frozenset(_objects(api))


def _objects(api: Api) -> Iterator[str]:
    groups = [group["preferredVersion"]["groupVersion"] for group in api.get("/apis")["groups"]]
    for root in ("/api/v1", *(f"/apis/{group}" for group in groups)):
        for resource in api.get(root)["resources"]:
            if "list" not in resource["verbs"] or resource["kind"] in _OF_ITSELF:
                continue
            for item in api.items(f"{root}/{resource['name']}"):
                metadata = item["metadata"]
                # Objects with a controller, such as a Deployment's ReplicaSets, are deleted with it.
                if any(owner.get("controller") for owner in metadata.get("ownerReferences", ())):
                    continue
                where = f" in {metadata['namespace']}" if "namespace" in metadata else ""
                yield f"{resource['kind']} {metadata['name']}{where}"


@dataclass(slots=True)
class Stage:
    """The environment of a rehearsal.

    Attributes:
        directory: the directory of all files.
        cloud: the fake cloud's process.
        engine: the real engine, with the stack.
        before: the inventory before the stack.
        tools: the programs and data in use.
        processes: the process group of all programs except the cloud.
    """

    directory: Path
    cloud: RunningCloud
    engine: Engine
    before: frozenset[str]
    tools: Tools
    processes: Processes
    _argo: Argo | None = None
    _api: dict[str, Api] = field(default_factory=dict[str, Api])

    @property
    def store(self) -> Store:
        """The fake cloud's store."""
        return self.cloud.store

    def api(self) -> Api:
        """Return a client for the cluster, with the stack's kubeconfig output."""
        kubeconfig = str(self.engine.outputs()["kubeconfig"])
        if kubeconfig not in self._api:
            self._api[kubeconfig] = Api.of_kubeconfig(json.loads(kubeconfig))
        return self._api[kubeconfig]

    def argo(self) -> Argo:
        """Return the stack's cluster with Argo's controller, which starts on first use.

        Raises:
            ControlPlaneError: it has ended.
        """
        if self._argo is None:
            (cluster,) = [resource for resource in self.store.resources() if resource.type == CLUSTER]
            kubeconfig = Path(cluster.state["kubeconfig"])
            api = Api.of_kubeconfig(json.loads(kubeconfig.read_text()))
            self._argo = start(api, kubeconfig, self.tools, self.processes, self.directory)
        self._argo.check()
        return self._argo

    def end_argo(self) -> None:
        """Stop Argo's controller, if it runs, and remove its prerequisites."""
        if self._argo is not None:
            self._argo.remove()
            self._argo = None

    def declare(self, declaration: Mapping[str, Any]) -> None:
        """Replace the stack's declaration."""
        self.engine.declare(declaration)
        introduce(declaration, self.store)

    def watch(self, seconds: float) -> None:
        """Wait by the wall clock, and check that all processes still run.

        Raises:
            RehearsalError: the fake cloud has ended.
        """
        self.cloud.check()
        if self._argo is not None:
            self._argo.check()
        time.sleep(seconds)

    def memory(self) -> int:
        """Peak memory of the fake cloud and its control planes, in bytes."""
        return self.cloud.memory()

    def leftovers(self, retained: frozenset[str] = frozenset()) -> list[str]:
        """List resources that did not exist before the stack, a sentence each.

        Args:
            retained: type and id of resources that a destroy retains.
        """
        return [f"{item} is left." for item in sorted(everything(self.store) - self.before - retained)]


@contextlib.contextmanager
def stage(
    files: StackFiles,
    settings: CloudSettings,
    tools: Tools,
    *,
    manifests: Sequence[Path] = (),
    charts: Sequence[Path] = (),
    keep: Path | None = None,
) -> Generator[Stage]:
    """Set up the environment, and tear it down at the end.

    Args:
        files: the project and the stack.
        settings: the fake cloud's settings, without its tools.
        tools: programs and data for the cloud and the engine.
        manifests: directories of rendered kustomizations, for offline use.
        charts: directories of charts that are not among the tools.
        keep: an empty directory for all files, which is kept; a temporary one by default.

    Raises:
        RehearsalError: setup failed.
    """
    with contextlib.ExitStack() as ending:
        directory = ending.enter_context(empty_directory(keep))
        programs = directory / "bin"
        programs.mkdir()
        for name in ("pulumi", "kubectl"):
            (programs / name).symlink_to(tools.path(name))
        path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
        home = str(directory / "engine" / "home")
        ending.enter_context(process_environment({"PATH": path, "PULUMI_HOME": home}))
        cloud = ending.enter_context(running_cloud(directory, settings, tools))
        engine = Engine(
            files,
            pulumi=tools.path("pulumi"),
            directory=directory / "engine",
            kubernetes=tools.path("pulumi-resource-kubernetes"),
            environment={
                "PULUMI_DEBUG_PROVIDERS": cloud.providers,
                **mirror(directory / "git", tools, manifests, programs),
            },
            end=cloud.stop,
        )
        link_charts(engine.project, tools, charts)
        processes = ending.enter_context(Processes())
        yield Stage(directory, cloud, engine, everything(cloud.store), tools, processes)


@contextlib.contextmanager
def empty_directory(keep: Path | None) -> Generator[Path]:
    """Create the directory of a rehearsal's files, and delete it at the end unless it is kept.

    Args:
        keep: an empty or missing directory, which is kept; a temporary one by default.

    Raises:
        RehearsalError: it is not empty.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="ebbtide-") as name:
            yield Path(name)
        return
    directory = keep.resolve()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise RehearsalError(f"{keep} is not empty; each rehearsal needs an empty directory.")
    yield directory


@contextlib.contextmanager
def running_cloud(directory: Path, settings: CloudSettings, tools: Tools) -> Generator[RunningCloud]:
    """Run the fake cloud; meanwhile this process and its children trust it.

    Args:
        directory: the directory of the rehearsal's files.
        settings: the fake cloud's settings, without its tools.
        tools: programs and data for the cloud.

    Raises:
        RehearsalError: it does not start.
    """
    trusted = directory / "trusted.crt"
    trusted.write_bytes(Path(certifi.where()).read_bytes())
    settings = replace(settings, tools={name: str(tool.path) for name, tool in tools.by_name.items()})
    with process_environment({"SSL_CERT_FILE": str(trusted)}), RunningCloud(directory, settings) as cloud:
        yield cloud


def everything(store: Store) -> frozenset[str]:
    """List everything in the cloud and in its clusters."""
    resources = [item for item in store.resources() if item.cloud != REGIONS]
    clusters = [item for item in resources if item.type == CLUSTER]
    inside = (
        f"{name} in the cluster {cluster.id}"
        for cluster in clusters
        for name in inventory(Api.of_kubeconfig(json.loads(Path(cluster.state["kubeconfig"]).read_text())))
    )
    return frozenset((*(f"{item.type} {item.id}" for item in resources), *inside))


@contextlib.contextmanager
def process_environment(variables: Mapping[str, str]) -> Generator[None]:
    """Set environment variables of this process and its children for the duration of the block."""
    before: dict[str, Any] = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
