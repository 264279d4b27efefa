"""Charts and kustomizations on this machine, where the Kubernetes provider looks before it asks the network.

Helm takes a directory of the chart's name, below the working directory, before it asks a repository or a
registry. Kustomize fetches with git, whose configuration redirects a repository's URL to a local one.
Sources: helm.sh/helm/v3@v3.18.6, pkg/action/install.go (`LocateChart`); sigs.k8s.io/kustomize/api@v0.19.0,
internal/git/repospec.go and cloner.go; git-config(1), `url.<base>.insteadOf` and `GIT_CONFIG_COUNT`.
"""

import os
import re
import shlex
import shutil
import stat
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import yaml

from ebbtide_rehearsal.addons import rehearsed
from ebbtide_rehearsal.addons.definition import Revision
from ebbtide_rehearsal.failures import RehearsalError
from ebbtide_rehearsal.tools import Tools

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


_WRITE_INDEX: Final = (
    f"Write an {INDEX} with a line for each kustomization: its address as the program gives it, a colon, and "
    "the name of a file beside it with what `kubectl kustomize ADDRESS` prints."
)


def link_charts(project: Path, tools: Tools, directories: Sequence[Path]) -> None:
    """Link charts into the engine's working directory.

    Args:
        project: the working directory.
        tools: with the charts that the declaration uses.
        directories: directories of unpacked charts, each in a directory of its name.
    """
    charts = {
        address: tools.path(data)
        for add_on in rehearsed().values()
        for address, data in add_on.charts.items()
        if data in tools.by_name
    }
    for directory in directories:
        charts |= {chart.parent.name: chart.parent.resolve() for chart in directory.glob("*/Chart.yaml")}
    for address, chart in charts.items():
        link = project / address
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(chart, target_is_directory=True)


def mirror(root: Path, tools: Tools, directories: Sequence[Path]) -> Mapping[str, str]:
    """Create local git repositories of kustomizations.

    Args:
        root: an empty or missing directory for the repositories.
        tools: with the manifests that the declaration uses.
        directories: directories of rendered kustomizations with an index; these replace the tools'.

    Returns:
        Environment variables with which git fetches from them.

    Raises:
        RehearsalError: an index is invalid, or git is missing or fails.
    """
    trees: defaultdict[Revision, list[tuple[str, Path]]] = defaultdict(list)
    for add_on in rehearsed().values():
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
    environment = dict(_redirected(root, {revision.repository for revision in trees}))
    if commits := {revision.ref for revision in trees if _COMMIT.fullmatch(revision.ref)}:
        environment["PATH"] = os.pathsep.join((_fetching_tags(root / "bin", commits), os.environ["PATH"]))
    return environment


def _fetching_tags(directory: Path, commits: Iterable[str]) -> str:
    """Write a `git` that fetches the tag of a commit's name, and return its directory.

    The repositories have upstream's files, and not its commits: only the tag can have the name.
    """
    directory.mkdir()
    git = directory / "git"
    git.write_text(
        _GIT.format(commits="|".join(sorted(commits)), git=shlex.quote(str(shutil.which("git")))), "utf-8"
    )
    git.chmod(git.stat().st_mode | stat.S_IXUSR)
    return str(directory)


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
