"""A project's `Pulumi.yaml` and a stack's `Pulumi.<stack>.yaml`, read without the `pulumi` command.

Configuration has the form in which the command passes it to a program: keys with a namespace, values as
strings, objects as JSON. Encrypted values are not decrypted and need no passphrase: a placeholder replaces
them, and their keys are secret.
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from ebbtide.analysis.policy.check import policy_of, policy_schema
from ebbtide.analysis.policy.settings import KEY, Policy, PolicyError
from ebbtide.analysis.recording.recording import Recording, Updates
from ebbtide.declaration.catalog.machine_offers import accelerator_types
from ebbtide.declaration.catalog.machines import machine_names
from ebbtide.declaration.catalog.prices import own_prices
from ebbtide.declaration.model.declare import whole_schema, with_changes
from ebbtide.declaration.project import yaml_file
from ebbtide.declaration.project.configuration import NAMESPACE, completed, parsed, stack_file
from ebbtide.declaration.project.extends import DECLARATION, Declaration, base_files, extended, inherited
from ebbtide.declaration.project.source import MisplacedKey, Source, misplaced_keys
from ebbtide.declaration.project.yaml_file import Document, Yaml, positions_below
from ebbtide.errors import EbbtideError, ExtendsError
from ebbtide.text import and_list
from ebbtide.values.cloud_kind import CloudKind

PLACEHOLDER: Final = "encrypted-in-the-stack-file"
"""Placeholder for an encrypted value, in a form that is valid in resource names."""

_DECLARATION_KEYS: Final = {"type", "description", "items", "default", "value", "secret"}
_REQUIRED: Final = ("name", "owner", "cloud", "pools")
"""Required fields: if one is missing, the declaration's own error names the misplaced key."""
_PRICES: Final = "ebbtide:prices"
"""Configuration key of the user's price file, relative to the directory of `Pulumi.yaml`."""
_PROJECT_FILES: Final = ("Pulumi.yaml", "Pulumi.yml")
_STACK_FILE: Final = re.compile(r"^Pulumi\.(?P<stack>[\w.-]+)\.ya?ml$")


class StackFileError(EbbtideError):
    """A project's or stack's file is missing, malformed or has the wrong structure."""

    rule = "stack-file"


class MergedConfig(NamedTuple):
    """A stack's merged configuration.

    Attributes:
        values: the values by full key.
        secret_keys: the keys whose values are secret.
        origins: the file of each value, and its key path in that file.
    """

    values: dict[str, str]
    secret_keys: frozenset[str]
    origins: dict[str, tuple[Path, tuple[str, ...]]]


def merged_config(
    project: str,
    declared: Mapping[str, Yaml],
    written: Mapping[str, Yaml],
    project_file: Path,
    config_file: Path,
) -> MergedConfig:
    """Merge a stack's configuration with the defaults of its project.

    Args:
        project: the project's name, the default namespace of keys.
        declared: `config` of `Pulumi.yaml`: values, or declarations with a `value` or `default`.
        written: `config` of the stack's file.
        project_file: the file of `declared`, for messages.
        config_file: the file of `written`, for messages.

    Raises:
        StackFileError: a key is malformed, or a required key has no value.
    """
    config: dict[str, str] = {}
    secret_keys: set[str] = set()
    origins: dict[str, tuple[Path, tuple[str, ...]]] = {}

    def take(key: str, value: Yaml, file: Path, *path: str) -> None:
        config[key], is_secret = _serialized(value)
        origins[key] = (file, ("config", *path))
        if is_secret:
            secret_keys.add(key)

    for key, value in written.items():
        take(_full_key(key, project, config_file), value, config_file, key)
    missing: list[str] = []
    for key, entry in declared.items():
        full = _full_key(key, project, project_file)
        declaration = _declaration(entry)
        if declaration.get("secret"):
            secret_keys.add(full)
        if full in config:
            continue
        value = declaration.get("value", declaration.get("default"))
        if value is None:
            missing.append(f"`{full}`")
            continue
        is_declared = declaration is entry
        field = "value" if "value" in declaration else "default"
        take(full, value, project_file, key, *([field] if is_declared else []))
    if missing:
        them = "them" if len(missing) > 1 else "it"
        raise StackFileError(
            f"{config_file} has no value for {and_list(missing)}, which {project_file} requires of every "
            f"stack. Write {them} under `config:`, or give {them} a `default` in {project_file.name}."
        )
    return MergedConfig(config, frozenset(secret_keys), origins)


def _full_key(key: str, project: str, file: Path) -> str:
    """Return a key with its namespace, by default the project's; `a:config:b` is an old form of `a:b`."""
    match key.split(":"):
        case [name] if name:
            return f"{project}:{name}"
        case [namespace, name] | [namespace, "config", name] if namespace and name:
            return f"{namespace}:{name}"
        case _:
            raise StackFileError(f"{file} has the key `{key}`; a key is `name` or `namespace:name`.")


def _serialized(value: Yaml) -> tuple[str, bool]:
    """Return a value as the engine passes it to a program, and whether any of it was encrypted."""
    plain, is_secret = _without_ciphertext(value)
    if isinstance(plain, str):
        return plain, is_secret
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False), is_secret


def _without_ciphertext(value: Yaml) -> tuple[Yaml, bool]:
    """Replace each `secure:` in a value with the placeholder, and return whether there was any."""
    match value:
        case {"secure": str()} if len(value) == 1:
            return PLACEHOLDER, True
        case dict():
            items = {key: _without_ciphertext(item) for key, item in value.items()}
            return {key: plain for key, (plain, _) in items.items()}, any(
                is_encrypted for _, is_encrypted in items.values()
            )
        case list():
            listed = [_without_ciphertext(item) for item in value]
            return [plain for plain, _ in listed], any(is_encrypted for _, is_encrypted in listed)
        case float() if value.is_integer():  # pyrefly: ignore[missing-attribute] # no int, which lacks it in 3.11
            return int(value), False
        case _:
            return value, False


def _declaration(entry: Yaml) -> dict[str, Yaml]:
    """Return a key's declaration in `Pulumi.yaml`, `{type: string, default: …}`; a bare value is `{value:
    …}`.
    """
    if isinstance(entry, dict) and entry and set(entry) <= _DECLARATION_KEYS:
        return entry
    return {"value": entry}


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFiles:
    """A stack as declared in its project's files.

    Attributes:
        project: the project's name.
        stack: the stack's name.
        root: the directory of `Pulumi.yaml`.
        program: the directory or file of the program.
        config: full keys and their values as the engine passes them to a program.
        secret_keys: the keys whose values are secret.
        warnings: settings that a preview without the `pulumi` command cannot apply.
        source: the position of the declaration, for its errors; None without a declaration.
        policy_source: the policy with its positions, for its errors; None without a policy.
        prices_file: the user's price file, relative to `root`; empty for none.
        misplaced: unused keys of the stack's file.
    """

    project: str
    stack: str
    root: Path
    program: Path
    config_file: Path
    config: Mapping[str, str]
    secret_keys: frozenset[str]
    warnings: tuple[str, ...] = ()
    source: Source | None = None
    policy_source: Source | None = None
    prices_file: str = ""
    misplaced: tuple[MisplacedKey, ...] = ()

    @property
    def cluster_name(self) -> str:
        """The cluster's default name."""
        return f"{self.project}-{self.stack}"

    def declaration(self) -> Any:
        """Return the stack's declaration, merged with its bases and completed with the stack's settings.

        Raises:
            ExtendsError: the settings have accounts of two clouds.
            StackFileError: the stack declares no cluster.
        """
        if self.source is None:
            hint = " ".join(str(key) for key in self.misplaced)
            raise StackFileError(
                f"{self.config_file} declares no cluster. "
                + (hint or f"Write one under `{DECLARATION}`; README.md has a minimal example.")
            )
        declared = self.source.declaration
        own = completed(
            declared.value,
            declared.bases,
            lambda name: self.config.get(f"{NAMESPACE}:{name}"),
            self.root,
        )
        return copy.deepcopy(own)

    def policy(self) -> Policy:
        """Return the stack's policy, or the default one.

        Raises:
            PolicyError: the policy is invalid.
        """
        try:
            return policy_of(self.policy_source.declaration.value if self.policy_source else None)
        except PolicyError as error:
            error.source = self.policy_source
            raise

    def prices(self) -> AbstractContextManager[None]:
        """Return a context with the prices of the file in `ebbtide:prices`.

        Raises:
            PriceFileError: on entry, if the file is invalid.
        """
        if not self.prices_file:
            return nullcontext()
        return own_prices(self.root / self.prices_file, self._added_regions())

    def _added_regions(self) -> list[str]:
        """Return the names of the regions that the declaration adds, as far as it is valid."""
        declared: Yaml = self.source.declaration.value if self.source else None
        match declared:
            case {"cloud": {"regions": list() as regions}}:
                return [str(region.get("name")) for region in regions if isinstance(region, dict)]
            case _:
                return []

    def extending(self) -> Iterator[tuple[str, Path]]:
        """Yield the other stacks that extend this stack's file, or a file that it extends and that is not a
        stack's own."""
        own, bases = self.config_file.resolve(), base_files(self.config_file, self.root)
        shared = {own, *(base for base in bases if stack_named_by(base) is None)}
        for path in sorted(self.config_file.parent.glob("Pulumi.*")):
            stack = stack_named_by(path)
            if stack and path.resolve() != own and not shared.isdisjoint(base_files(path, self.root)):
                yield stack, path

    def declaring(self, declaration: Mapping[str, Any]) -> Self:
        """Return these files with the declaration replaced."""
        source = Source(declaration=Declaration(declaration, {}))
        return replace(self, config={**self.config, DECLARATION: json.dumps(declaration)}, source=source)


def stack_named_by(config_file: Path) -> str | None:
    """Return the stack in a file's name: `dev` for `Pulumi.dev.yaml`."""
    match = _STACK_FILE.match(config_file.name)
    return match["stack"] if match else None


def read_stack(directory: Path, stack: str, *, config_file: Path | None = None) -> StackFiles:
    """Read a project's files for a stack.

    Args:
        directory: the project's directory or one below it, as for the `pulumi` command.
        stack: the stack's name.
        config_file: the stack's file, if it is not beside `Pulumi.yaml`.

    Raises:
        StackFileError: a file is missing, malformed or has the wrong structure.
    """
    project_file = project_path(directory)
    project_document = _read(project_file)
    settings = _mapping(project_document.value, f"{project_file}")
    project = settings.get("name")
    if not isinstance(project, str) or not project:
        raise StackFileError(f"{project_file} has no `name`. Add one, such as `name: ebbtide`.")
    _check_runtime(settings.get("runtime"), project_file)

    root = project_file.parent
    if config_file is None:
        config_file = _existing(stack_file(root, settings, stack), stack)
    elif config_file == Path():
        raise StackFileError("--config-file is empty. Name a stack's file, or omit the option.")
    elif not config_file.is_file():
        raise StackFileError(f"There is no file {config_file}, which --config-file names.")
    document = _read(config_file)
    stack_settings = _mapping(document.value or {}, f"{config_file}")
    misplaced = tuple(misplaced_keys(config_file, document, project))
    if certain := next((key for key in misplaced if key.is_certain), None):
        raise StackFileError(str(certain))
    declared = settings.get("config") or {}
    if isinstance(declared, str):  # an old form of stackConfigDir
        declared = {}
    merged = merged_config(
        project,
        _mapping(declared, f"`config` in {project_file}"),
        _mapping(stack_settings.get("config") or {}, f"`config` in {config_file}"),
        project_file,
        config_file,
    )
    documents = {config_file: document, project_file: project_document}
    optional = [str(key) for key in misplaced if key.field not in _REQUIRED]
    warnings = optional if DECLARATION in merged.values else []
    source, policy, prices_file = _settings(merged, documents, root, misplaced)
    if stack_settings.get("environment"):
        warnings.append(
            f"{config_file.name} uses a Pulumi ESC environment, which only Pulumi Cloud can open: its values "
            "are missing from this preview."
        )
    return StackFiles(
        project=project,
        stack=stack,
        root=root,
        program=root / str(settings.get("main") or ""),
        config_file=config_file,
        config=merged.values,
        secret_keys=merged.secret_keys,
        warnings=tuple(warnings),
        source=source,
        policy_source=policy,
        prices_file=prices_file,
        misplaced=misplaced,
    )


def _settings(
    config: MergedConfig,
    documents: Mapping[Path, Document],
    root: Path,
    misplaced: tuple[MisplacedKey, ...],
) -> tuple[Source | None, Source | None, str]:
    """Return the declaration, the policy and the price file, each merged with the declaration's bases."""
    written = _written(DECLARATION, config, documents)
    try:
        declaration = extended(written.value, root, written.positions) if written else None
    except ExtendsError as error:
        raise StackFileError(str(error)) from error
    others = {key: _written(key, config, documents) for key in config.values if key != DECLARATION}
    settings = {
        key.removeprefix(f"{NAMESPACE}:"): (other.value, other.positions.get(()))
        for key, other in others.items()
        if other
    }
    bases = declaration.bases if declaration else ()
    policy = inherited(KEY, _written(KEY, config, documents), bases, root)
    prices = inherited(_PRICES, _written(_PRICES, config, documents), bases, root)
    if declaration and bases:
        declaration = _with_changes(declaration, policy=policy, prices=prices)
    return (
        Source(declaration=declaration, settings=settings, misplaced=misplaced) if declaration else None,
        Source(declaration=policy) if policy else None,
        str(prices.value or "") if prices else "",
    )


def _written(key: str, config: MergedConfig, documents: Mapping[Path, Document]) -> Declaration | None:
    """Return a configuration value with its positions; None if there is none."""
    if key not in config.values:
        return None
    file, prefix = config.origins[key]
    return Declaration(parsed(config.values[key]), positions_below(file, documents[file].positions, prefix))


def _with_changes(declaration: Declaration, **settings: Declaration | None) -> Declaration:
    """Return a declaration whose changes to its base include those of other settings."""
    changes = (
        f"{name}.{path}" if path else name
        for name, setting in settings.items()
        if setting
        for path in setting.changes
    )
    return replace(declaration, changes=(*declaration.changes, *changes))


def project_path(directory: Path) -> Path:
    """Return the project's file, `Pulumi.yaml`, in a directory or above it.

    Raises:
        StackFileError: there is no such directory or project.
    """
    if not directory.is_dir():
        raise StackFileError(f"There is no directory {directory}.")
    for parent in (directory, *directory.resolve().parents):
        for name in _PROJECT_FILES:
            if (parent / name).is_file():
                return parent / name
    raise StackFileError(
        f"There is no Pulumi project in {directory.resolve()} or above it: no Pulumi.yaml. Run this in the "
        "project's directory, or name the directory with --cwd."
    )


def _existing(file: Path, stack: str) -> Path:
    if file.is_file():
        return file
    stacks = sorted(
        name
        for path in file.parent.glob("Pulumi.*")
        if path.is_file() and (name := stack_named_by(path)) is not None
    )
    near = get_close_matches(stack, stacks, n=1)
    message = f"There is no stack {stack}: no file {file}."
    if near:
        message += f" Did you mean {near[0]}?"
    if stacks:
        message += f" Existing stacks: {', '.join(stacks)}."
    else:
        message += " There are no other stacks. Write that file, or name another with --config-file."
    raise StackFileError(message)


def _read(path: Path) -> Document:
    try:
        return yaml_file.read(path)
    except yaml_file.YamlFileError as error:
        raise StackFileError(str(error)) from error


def _mapping(value: Yaml, name: str) -> dict[str, Yaml]:
    if isinstance(value, dict):
        return value
    kind = "empty" if value is None else "a list" if isinstance(value, list) else f"`{value}`"
    raise StackFileError(f"{name} is {kind}; it must be a mapping with one `key: value` per line.")


def _check_runtime(runtime: Yaml, project_file: Path) -> None:
    name = runtime.get("name") if isinstance(runtime, dict) else runtime
    if name != "python":
        raise StackFileError(
            f"{project_file} has `runtime: {name}`. The preview supports `runtime: python` only."
            if name
            else f"{project_file} has no `runtime`. Write `runtime: python` there."
        )


def record_stack(
    files: StackFiles, updates: Updates | None = None, *, deployed: Recording | None = None
) -> Recording:
    """Run a stack's program offline, with the stack's configuration.

    Args:
        updates: the updates that the program's hooks are called with.
        deployed: the deployed stack, whose inputs are kept for ignored changes.

    Raises:
        ProgramError: the program fails.
    """
    from ebbtide.analysis.recording.record import record  # noqa: PLC0415 - loads Pulumi

    return record(
        files.program,
        project=files.project,
        stack=files.stack,
        config=files.config,
        secret_keys=files.secret_keys,
        root=files.root,
        updates=updates,
        deployed=deployed,
    )


def broken_extensions(files: StackFiles) -> Iterator[tuple[Path, Source | None, EbbtideError]]:
    """Record the other stacks that extend a stack's file, and yield those that are invalid with it: the file,
    the source of its declaration, and the error."""
    for stack, path in files.extending():
        source = None
        try:
            other = read_stack(files.root, stack, config_file=path)
            source = other.source
            other.policy()
            record_stack(other)
        except EbbtideError as error:
            yield path, source, error


def stack_schema() -> dict[str, Any]:
    """Return the schema of `Pulumi.<stack>.yaml`, with the names of machines and accelerators.

    No field is required: fields may come from a base file or from the program. Other configuration is not
    described.
    """
    whole, policy = whole_schema(), policy_schema()
    whole.pop("required")
    machines = [name for cloud in CloudKind for name in machine_names(cloud)]
    accelerators = list(dict.fromkeys(name for cloud in CloudKind for name in accelerator_types(cloud)))
    # A bare machine type must be in the catalog; newer types are declared with their resources.
    whole["$defs"]["Pool"]["properties"]["machine"]["anyOf"][0]["enum"] = machines
    whole["$defs"]["Accelerator"]["properties"]["type"]["enum"] = accelerators
    declaration = with_changes(whole)
    definitions = declaration.pop("$defs") | policy.pop("$defs")
    policy.pop("$schema")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": definitions,
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "properties": {"ebbtide:cluster": declaration, "ebbtide:policy": policy},
            }
        },
    }
