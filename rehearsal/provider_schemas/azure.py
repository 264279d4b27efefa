"""Constraints of Azure's resources, from Azure's SDK for Python and the source of azure-native.

Both are generated from Azure's API specifications: the SDK has limits of names and values, azure-native the
properties whose change replaces a resource.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ebbtide.declaration.providers.schema import arguments
from rehearsal.provider_schemas import Row, descendants

RESOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "azure-native:authorization:RoleAssignment": ("", ""),
    "azure-native:containerregistry:Registry": ("containerregistry", "Registry"),
    "azure-native:containerservice:AgentPool": ("containerservice", "AgentPool"),
    "azure-native:containerservice:MaintenanceConfiguration": ("containerservice", ""),
    "azure-native:containerservice:ManagedCluster": ("containerservice", "ManagedCluster"),
    "azure-native:network:Subnet": ("", ""),
    "azure-native:network:VirtualNetwork": ("", ""),
    "azure-native:operationalinsights:Workspace": ("loganalytics", "Workspace"),
    "azure-native:managedidentity:UserAssignedIdentity": ("msi", "Identity"),
    "azure-native:resources:ResourceGroup": ("resource", "ResourceGroup"),
    "azure-native:storage:BlobContainer": ("storage", "BlobContainer"),
    "azure-native:storage:FileShare": ("storage", "FileShare"),
    "azure-native:storage:StorageAccount": ("storage", "StorageAccountCreateParameters"),
}
"""SDK package with the limits of names, and model with the limits of values, by resource type."""

REPLACEMENTS: Final = "pulumi-azure-native 1b7112af, provider/pkg/gen/replacement.go"

_CONSTRAINTS: Final = {
    "max_length": "longest",
    "min_length": "shortest",
    "maximum": "maximum",
    "minimum": "minimum",
    "pattern": "pattern",
}
_DEEPEST: Final = 6
_SET: Final = re.compile(r'"(\w+)":\s*codegen\.NewStringSet\((.*?)\)', re.DOTALL)
_MODULE: Final = re.compile(r'^\t"(\w+)": \{(.*?)^\t\},', re.DOTALL | re.MULTILINE)


def limits(token: str) -> Iterator[Row]:
    """Yield the limits of a type's names and values, from its installed SDK package."""
    package, model = RESOURCES[token]
    source = f"azure-mgmt-{package} {metadata.version(f'azure-mgmt-{package}')}"
    known = dict(descendants(arguments(token)))
    for name, given in _names_in_paths(package).items():
        if name in known:
            yield from _rows(token, name, given, source)
    models = _models(package)
    if model in models:
        for path, given in _of_model(models, model, ""):
            if path not in known:
                continue
            yield from _rows(token, path, given, source)
            if given.get("required") and "." not in path and not known[path].required:
                yield Row(token, path, "required", "", source)


def _rows(token: str, path: str, given: Mapping[str, Any], source: str) -> Iterator[Row]:
    for key, constraint in _CONSTRAINTS.items():
        if key in given:
            yield Row(token, path, constraint, str(given[key]), source)


def _of_model(
    models: Mapping[str, Mapping[str, Any]], model: str, above: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the limits of a model's properties and of nested ones, by path."""
    for python, attribute in models[model]["_attribute_map"].items():
        path = above + attribute["key"].removeprefix("properties.")
        yield path, models[model].get("_validation", {}).get(python, {})
        inner = attribute["type"].strip("[]{}")
        if inner in models and path.count(".") < _DEEPEST:
            yield from _of_model(models, inner, f"{path}.")


@cache
def _files(package: str, pattern: str) -> tuple[Path, ...]:
    """Return files of a package, ordered by API version."""
    spec = find_spec(f"azure.mgmt.{package}")
    roots = spec.submodule_search_locations if spec else None
    listed = (file for root in roots or () for file in Path(root).rglob(pattern))
    return tuple(sorted(file for file in listed if "aio" not in file.parts))


@cache
def _models(package: str) -> dict[str, dict[str, Any]]:
    """Return the tables of a package's models, by class."""
    models: dict[str, dict[str, Any]] = {}
    for file in _files(package, "_models_py3.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef):
                tables = dict(_tables(node))
                models |= {node.name: tables} if "_attribute_map" in tables else {}
    return models


def _tables(model: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    for node in model.body:
        name = getattr(node.targets[0], "id", "") if isinstance(node, ast.Assign) else ""
        if isinstance(node, ast.Assign) and name in ("_attribute_map", "_validation"):
            yield name, ast.literal_eval(node.value)


@cache
def _names_in_paths(package: str) -> dict[str, dict[str, Any]]:
    """Return the limits of the names in a package's paths."""
    result: dict[str, dict[str, Any]] = {}
    for file in _files(package, "operations/_*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Dict):
                result.update(_names_in(node))
    return result


def _names_in(arguments_of_path: ast.Dict) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in zip(arguments_of_path.keys, arguments_of_path.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Call) and value.keywords:
            given = {
                word.arg: word.value.value
                for word in value.keywords
                if word.arg in _CONSTRAINTS and isinstance(word.value, ast.Constant)
            }
            if given and str(key.value).endswith("Name"):
                yield str(key.value), given


def replacements(file: Path) -> Iterator[Row]:
    """Yield the properties whose change replaces a resource, from azure-native's `replacement.go`.

    It has property names, regardless of their path in the resource.
    """
    text = re.sub(r"//.*", "", file.read_text()).partition("noForceNewMap")[0]
    names = {
        (module.lower(), resource): set(re.findall(r'"(\w+)"', listed))
        for module, body in _MODULE.findall(text)
        for resource, listed in _SET.findall(body)
    }
    for token in RESOURCES:
        _, module, resource = token.split(":")
        for path, item in descendants(arguments(token)):
            if item.name in names.get((module, resource), ()):
                yield Row(token, path, "replace", "within", REPLACEMENTS)


def installed_limits() -> Iterator[Row]:
    """Yield the limits of the types whose SDK package is installed."""
    for token, (package, _) in RESOURCES.items():
        if is_installed(package):
            yield from limits(token)


def is_installed(package: str) -> bool:
    """Return whether an SDK package is installed."""
    return bool(package) and find_spec(f"azure.mgmt.{package}") is not None
