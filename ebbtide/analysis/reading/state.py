"""A recording of a deployed stack, from the document of `pulumi stack export`.

Inputs are those given to the providers, without the defaults that they added. Encrypted values are unknown.
Source: pulumi 3.259, sdk/go/common/apitype/core.go (`UntypedDeployment`, `ResourceV3`).
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from ebbtide.analysis.changes import azure
from ebbtide.analysis.recording.recording import STACK_TYPE, Recording, Resource, stack_and_project, urn_name
from ebbtide.analysis.recording.values import ARCHIVE, ASSET, SECRET, SIGNATURE, UNKNOWN, Plain, Secret
from ebbtide.errors import EbbtideError
from ebbtide.values.paths import path_text
from ebbtide.values.user_files import parse_json

_DEFAULT_PROVIDER: Final = "::default"
_DEFAULTS: Final = "__defaults"  # the bridge's list of the properties that it filled in
_HINT: Final = "Write it with `pulumi stack export --file state.json`."
_AUTONAMED: Final = "pulumi.com/autonamed"


class StateError(EbbtideError):
    """The file is not an exported state, or belongs to another stack."""

    rule = "state"


class _Exported(BaseModel):
    """The fields of a resource that are read here."""

    model_config = ConfigDict(strict=True, alias_generator=to_camel)

    urn: str
    type: str
    parent: str | None = None
    provider: str | None = None
    id: str | None = None
    inputs: dict[str, Any] | None = None
    outputs: dict[str, Any] | None = None
    dependencies: list[str] | None = None
    property_dependencies: dict[str, list[str] | None] | None = None
    deleted_with: str | None = None


_EXPORTED: Final = TypeAdapter(list[_Exported])


def recording_of(text: str, *, project: str, stack: str, file: str) -> Recording:
    """Return the recording of an exported state.

    Args:
        text: the document of `pulumi stack export`.
        project: the expected project.
        stack: the expected stack.
        file: name of the file, for messages.

    Raises:
        StateError: it is not an exported state, or belongs to another stack.
    """
    resources = [item for item in _resources(text, file) if not item.get("delete")]
    owners = {stack_and_project(str(item["urn"])) for item in resources}
    if others := sorted(owners - {(stack, project)}):
        name, owner = others[0]
        raise StateError(
            f"{file} is the state of stack {name} of project {owner}, not of {stack} of {project}."
        )
    kept = [item for item in resources if item["type"] != STACK_TYPE and _DEFAULT_PROVIDER not in item["urn"]]
    stacks = {item["urn"] for item in resources if item["type"] == STACK_TYPE}
    try:
        recorded = tuple(_resource(item, stacks) for item in kept)
    except ValueError as error:
        raise StateError(f"{file} has a secret that is not JSON: {error}. {_HINT}") from None
    return Recording(project=project, stack=stack, resources=recorded)


def _resources(text: str, file: str) -> list[dict[str, Any]]:
    try:
        document = parse_json(text)
    except ValueError as error:
        raise StateError(f"{file} is not JSON: {error}. {_HINT}") from None
    deployment = document.get("deployment") if isinstance(document, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] # JSON
    if not isinstance(deployment, dict):
        raise StateError(f"{file} is not an exported state: it has no `deployment`. {_HINT}")
    resources: Any = cast("dict[str, Any]", deployment).get("resources") or []
    try:
        _EXPORTED.validate_python(resources)
    except ValidationError as error:
        fault = error.errors()[0]
        path = path_text(("resources", *fault["loc"]))
        is_missing = fault["type"] == "missing"
        problem = "is missing" if is_missing else "has a value of another type than the engine writes"
        raise StateError(f"{file} is not an exported state: {path} {problem}. {_HINT}") from None
    return resources


def _resource(item: Mapping[str, Any], stacks: set[str]) -> Resource:
    type_, parent = str(item["type"]), item.get("parent")
    provider = str(item.get("provider") or "").rpartition("::")[0]
    inputs = cast("dict[str, Plain]", _plain(item.get("inputs") or {}))
    dependencies: dict[str, list[str]] = item.get("propertyDependencies") or {}
    return Resource(
        urn=item["urn"],
        type=type_,
        name=urn_name(item["urn"]),
        custom=bool(item.get("custom")),
        read=bool(item.get("external")),
        parent=None if parent in stacks else parent,
        id=item.get("id"),
        inputs=_declared(type_, inputs),
        outputs=cast("dict[str, Plain]", _plain(item.get("outputs") or {})),
        dependencies=tuple(sorted(item.get("dependencies") or ())),
        property_dependencies={key: tuple(sorted(urns)) for key, urns in dependencies.items() if urns},
        provider=None if _DEFAULT_PROVIDER in provider else provider or None,
        protect=bool(item.get("protect")),
        deleted_with=item.get("deletedWith") or None,
        retain_on_delete=bool(item.get("retainOnDelete")),
    )


def _plain(value: Any) -> Plain:
    """Convert a value of a state; secrets are wrapped, and unknown if encrypted."""
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    signature = fields.get(SIGNATURE)
    if signature == SECRET:
        plaintext = fields.get("plaintext")
        return Secret(UNKNOWN if plaintext is None else _plain(parse_json(str(plaintext))))
    if signature in (ASSET, ARCHIVE):
        # The engine adds a hash, and empty fields.
        rest = {key: item for key, item in fields.items() if key not in (SIGNATURE, "hash") and item}
        return {"asset" if signature == ASSET else "archive": rest}
    # In the order of a recording.
    return {key: _plain(fields[key]) for key in sorted(fields)}


def _declared(type_: str, inputs: dict[str, Plain]) -> dict[str, Plain]:
    """Return the inputs that a program declares, without the provider's defaults."""
    match type_.partition(":")[0]:
        case "gcp":
            return cast("dict[str, Plain]", _without_defaults(inputs))
        case "azure-native":
            filled = azure.filled_in(type_, inputs)
            return {key: value for key, value in inputs.items() if key not in filled}
        case "kubernetes":
            return _without_autoname(inputs)
        case _:
            return inputs


def _without_defaults(value: Plain) -> Plain:
    if isinstance(value, list):
        return [_without_defaults(item) for item in value]
    if not isinstance(value, dict):
        return value
    listed = value.get(_DEFAULTS)
    filled = {_DEFAULTS, *(cast("list[str]", listed) if isinstance(listed, list) else ())}
    return {key: _without_defaults(item) for key, item in value.items() if key not in filled}


def _without_autoname(inputs: dict[str, Plain]) -> dict[str, Plain]:
    metadata = inputs.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(annotations, dict) or _AUTONAMED not in annotations:
        return inputs
    rest = {key: value for key, value in annotations.items() if key != _AUTONAMED}
    kept: dict[str, Plain] = {
        key: value for key, value in metadata.items() if key not in ("name", "annotations")
    }
    return {**inputs, "metadata": {**kept, **({"annotations": rest} if rest else {})}}
