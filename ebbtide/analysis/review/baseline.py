"""The earlier version of a stack: a git ref, an exported state, or another stack file."""

import json
import os
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ebbtide.analysis.policy.check import Earlier
from ebbtide.analysis.policy.settings import Policy, PolicyError
from ebbtide.analysis.preview.stack_files import StackFileError, StackFiles, read_stack, record_stack
from ebbtide.analysis.reading import state
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import Plain, mapped
from ebbtide.analysis.review.difference import updates
from ebbtide.declaration.catalog.prices import PriceFileError, current_own_prices
from ebbtide.errors import EbbtideError
from ebbtide.text import several
from ebbtide.values.user_files import LARGEST_GENERATED, UserFileError, read_text

_STACK_FILES: Final = (".yaml", ".yml")
_FILES: Final = (*_STACK_FILES, ".json")
_GIT_VARIABLES: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables of a git hook, which would redirect git to the hook's own work tree."""


class BaselineError(EbbtideError):
    """There is no such earlier version, or it cannot be recorded."""

    rule = "against"


@dataclass(frozen=True, slots=True)
class Baseline:
    """An earlier version of a stack.

    Attributes:
        name: name as given on the command line.
        recording: its recording; None if the stack did not exist.
        deployed: True for a deployed state.
        earlier: its policy and prices; None if the stack did not exist, and for a state, which has none.
    """

    name: str
    recording: Recording | None
    deployed: bool = False
    earlier: Earlier | None = None

    def prices(self) -> AbstractContextManager[None]:
        """Return a context with its prices; for a state, with those around."""
        return self.earlier.prices() if self.earlier else nullcontext()

    @property
    def state(self) -> Recording | None:
        """The deployed stack; None for other earlier versions."""
        return self.recording if self.deployed else None

    def updates(self, after: Recording) -> list[tuple[Resource, Resource]]:
        """Return the updated resources with hooks, before and after."""
        return updates(self.recording, after, deployed=self.deployed) if self.recording else []


def baseline_of(document: Mapping[str, Any], *, project: str, stack: str) -> Baseline:
    """Return an exported state as a version to compare the program with."""
    recording = state.recording_of(json.dumps(document), project=project, stack=stack, file="The state")
    return Baseline("state", recording, deployed=True)


def baseline(files: StackFiles, against: str) -> Baseline:
    """Return a stack's earlier version.

    Args:
        against: a git ref, a file of `pulumi stack export` (.json), or another stack file (.yaml).

    Raises:
        BaselineError: there is no such version, or its program fails.
    """
    path = Path(against)
    if path.suffix in _FILES and not path.is_file():
        raise BaselineError(f"There is no file {against}, named by --against.")
    if path.suffix in _STACK_FILES:
        old = read_stack(files.root, files.stack, config_file=path)
        return _version(against, old, f"With {against}")
    if path.is_file():
        try:
            text = read_text(path, LARGEST_GENERATED)
        except UserFileError as error:
            raise BaselineError(f"{against}: {error}") from error
        recording = state.recording_of(text, project=files.project, stack=files.stack, file=against)
        return Baseline(against, recording, deployed=True)
    return _at_ref(files, against)


def _version(name: str, files: StackFiles, version: str) -> Baseline:
    """Return the earlier version in a stack's files. Invalid prices or an invalid policy do not decide: the
    change that fixes them is reviewed, too."""
    invalid: list[str] = []
    policy, prices = Policy(), None
    try:
        with files.prices():
            prices = current_own_prices()
    except PriceFileError as error:
        invalid.append(f"{version}, the prices are invalid: {error}")
    try:
        policy = files.policy()
    except PolicyError as error:
        invalid.append(f"{version}, the policy is invalid: {error}")
    earlier = Earlier(policy.in_ci(os.environ), prices, invalid=tuple(invalid))
    try:
        with earlier.prices():
            return Baseline(name, record_stack(files), earlier=earlier)
    except ProgramError as error:
        first, *others = str(error).splitlines()
    # Not from its cause: faults of the earlier version would be shown as those of the file under review.
    more = f" (and {several(len(others), 'more line')})" if others else ""
    raise BaselineError(
        f"{version}, the program cannot be recorded, so that nothing was compared: {first}{more} Review "
        "against a commit whose program works, or against the deployed state: `pulumi stack export "
        f"--file state.json --stack {files.stack}`, then --against state.json."
    )


def _at_ref(files: StackFiles, ref: str) -> Baseline:
    """Return a stack's version at a git ref, recorded in a temporary work tree."""
    root = Path(_git(files.root, "rev-parse", "--show-toplevel"))
    commit = _commit(files.root, ref)
    directory = files.root.resolve().relative_to(root.resolve())
    with _work_tree(files.root, commit) as tree:
        config_file = files.config_file.resolve()
        if config_file.is_relative_to(root.resolve()):
            config_file = tree / config_file.relative_to(root.resolve())
        if not (tree / directory / "Pulumi.yaml").is_file() or not config_file.is_file():
            return Baseline(ref, None)
        old, problem = None, ""
        try:
            old = read_stack(tree / directory, files.stack, config_file=config_file)
        except StackFileError as error:
            problem = f"At {ref}, the stack's files are invalid: {error}"
        if old is None:  # not from its cause, as in `_version`
            raise BaselineError(problem)
        recorded = _version(ref, old, f"At {ref}")
        assert recorded.recording is not None  # noqa: S101 - the stack exists at the ref
        moved = _moved(recorded.recording, str(tree), str(root.resolve()))
        since = ("--no-merges", "--format=%an", f"{commit}..HEAD", "--", str(files.root.resolve()))
        authors = tuple(dict.fromkeys(_git(files.root, "log", *since).splitlines()))
        assert recorded.earlier is not None  # noqa: S101 - as above
        return replace(recorded, recording=moved, earlier=replace(recorded.earlier, authors=authors))


def _moved(recording: Recording, old: str, new: str) -> Recording:
    """Return a recording with the paths of its checkout replaced, since they are not changes."""

    def moved(value: Plain) -> Plain:
        return mapped(value, lambda leaf: leaf.replace(old, new) if isinstance(leaf, str) else leaf)

    resources = (
        replace(resource, inputs={key: moved(value) for key, value in resource.inputs.items()})
        for resource in recording
    )
    return replace(recording, resources=tuple(resources))


def _commit(directory: Path, ref: str) -> str:
    try:
        return _git(directory, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    except _GitFailedError:
        raise BaselineError(
            f"There is no git ref {ref}, and no file of that name. If it is a branch of the remote, write "
            f"origin/{ref}; a shallow clone lacks it until `git fetch origin {ref}`."
        ) from None


@contextmanager
def _work_tree(directory: Path, commit: str) -> Generator[Path]:
    """Check a commit out into a temporary work tree, without its hooks."""
    with tempfile.TemporaryDirectory(prefix="ebbtide-") as temporary:
        tree = Path(temporary).resolve() / "tree"
        add = ("worktree", "add", "--quiet", "--detach", str(tree), commit)
        _git(directory, "-c", f"core.hooksPath={os.devnull}", *add)
        try:
            yield tree
        finally:
            _git(directory, "worktree", "remove", "--force", str(tree))


class _GitFailedError(BaselineError):
    """A git command failed."""


def _git(directory: Path, *arguments: str) -> str:
    """Run git and return its output.

    Raises:
        BaselineError: git is not installed, or fails.
    """
    environment = {key: value for key, value in os.environ.items() if key not in _GIT_VARIABLES}
    try:
        command = ["git", *arguments]
        done = subprocess.run(  # noqa: S603 - git, without a shell
            command, cwd=directory, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise BaselineError("--against with a git ref needs git, which is not installed.") from None
    if done.returncode:
        message = done.stderr.strip().splitlines()
        if any("not a git repository" in line for line in message):
            raise BaselineError(
                f"{directory} is not in a git repository, so --against can only name a file: an exported "
                "state (.json) or another stack file (.yaml)."
            )
        raise _GitFailedError(f"`git {arguments[0]}` failed: {message[-1] if message else 'no message'}.")
    return done.stdout.strip()
