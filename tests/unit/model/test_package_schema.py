"""The package schema has what the declaration has, and nothing else."""

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from ebbtide.declaration.model import Cluster
from ebbtide.declaration.model.package_schema import CLUSTER, NODE_POOL, package_schema
from ebbtide.declaration.model.waiting import WAITING
from tests.declarations import AKS, GKE
from tests.repository import ROOT, declaration

_SCHEMA = package_schema()


def _models(annotation: Any) -> dict[str, type[BaseModel]]:
    """Return a model and every model that its fields refer to, by name."""
    found: dict[str, type[BaseModel]] = {}

    def visit(part: Any) -> None:
        if isinstance(part, type) and issubclass(part, BaseModel) and part.__name__ not in found:
            found[part.__name__] = part
            for field in part.model_fields.values():
                visit(field.annotation)
        for inner in get_args(part):
            visit(inner)

    visit(annotation)
    return found


def _variants() -> set[str]:
    """Return the models that their `kind` distinguishes."""
    kinds = {name: model.model_fields.get("kind") for name, model in _models(Cluster).items()}
    return {name for name, kind in kinds.items() if kind is not None and len(get_args(kind.annotation)) == 1}


def _objects() -> dict[str, Any]:
    """Return the object types of the package by name, and its cluster."""
    types = {token.rpartition(":")[2]: spec for token, spec in _SCHEMA["types"].items() if "enum" not in spec}
    cluster = _SCHEMA["resources"][CLUSTER]
    return types | {
        "Cluster": {"properties": cluster["inputProperties"], "required": cluster["requiredInputs"]}
    }


def test_every_type_has_the_fields_of_its_model() -> None:
    """The same names and the same required fields; only a cluster's name may be omitted, and the kind of a
    variant must be written."""
    expected = {
        name: (
            {field.alias for field in model.model_fields.values()},
            {
                str(field.alias)
                for key, field in model.model_fields.items()
                if (field.is_required() and (name, key) != ("Cluster", "name"))
                or (name in _variants() and key == "kind")
            },
        )
        for name, model in _models(Cluster).items()
    }
    found = {name: (set(spec["properties"]), set(spec["required"])) for name, spec in _objects().items()}
    assert found == expected


def _as_json_schema(spec: Any) -> Any:  # noqa: PLR0911 - a form of type each
    """Return a type of the package as the JSON Schema of its values."""
    match spec:
        case {"$ref": "pulumi.json#/Any"}:
            return {}
        case {"$ref": str(reference)}:
            return {"$ref": reference.replace("#/types/", "#/$defs/")}
        case {"enum": values}:
            return {"enum": [item["value"] for item in values]}
        case {"properties": fields, "required": required}:
            properties = {name: _as_json_schema(field) for name, field in fields.items()}
            return {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            }
        case {"oneOf": choices}:
            return {"anyOf": [_as_json_schema(choice) for choice in choices]}
        case {"items": items}:
            return {"type": "array", "items": _as_json_schema(items)}
        case {"additionalProperties": items}:
            return {"type": "object", "additionalProperties": _as_json_schema(items)}
        case _:
            return spec


def _validator() -> Any:
    """Return a validator of the arguments of a cluster, by the types of the package."""
    types = {token: _as_json_schema(spec) for token, spec in _SCHEMA["types"].items()}
    return Draft202012Validator({"$defs": types, **_as_json_schema(_objects()["Cluster"])})


def _declarations() -> Iterator[Any]:
    yield pytest.param(GKE, id="gke")
    yield pytest.param(AKS, id="aks")
    for file in sorted(ROOT.glob("examples/*/Pulumi.*.yaml")):
        declared = declaration(file)
        if "extends" not in declared:
            yield pytest.param(declared, id=f"{file.parent.name} {file.stem}")


@pytest.mark.parametrize("declared", list(_declarations()))
def test_examples_have_the_types_of_the_package(declared: Any) -> None:
    """Every example that does not extend a file could be written in another language."""
    assert [error.message for error in _validator().iter_errors(declared)] == []


def test_a_wrong_value_has_another_type() -> None:
    """Unknown fields, wrong types, values outside of an enum and missing fields are errors of a program."""
    pool = {"name": "cpu", "hardware": "n2-standard-8", "image": "windows", "nodes": {"max": "3"}}
    wrong = {"cloud": {"project": "acme-ml", "location": "us-central1"}, "pools": [pool]}
    errors = _validator().iter_errors(wrong)
    assert {error.json_path for error in errors} == {
        "$",
        "$.cloud",
        "$.pools[0]",
        "$.pools[0].image",
        "$.pools[0].nodes.max",
    }


def test_every_reference_exists() -> None:
    """A type that nothing defines would make the engine refuse the schema."""
    text = json.dumps(_SCHEMA)
    references = {part.split('"')[0] for part in text.split('"$ref": "#/types/')[1:]}
    assert references - _SCHEMA["types"].keys() == set()


def test_a_node_pool_has_the_types_of_a_cluster() -> None:
    """Owner and cloud are those of the declaration."""
    cluster, pool = (_SCHEMA["resources"][token]["inputProperties"] for token in (CLUSTER, NODE_POOL))
    assert {key: pool[key] for key in ("owner", "cloud")} == {key: cluster[key] for key in ("owner", "cloud")}
    assert pool["pool"]["$ref"] == cluster["pools"]["items"]["$ref"]


def test_fields_that_wait_are_described() -> None:
    """Each row is a field of the package, whose description says so; no other does."""
    words = "It may be an output of a resource that does not exist yet."
    described = {
        f"{name}.{key}"
        for name, spec in _objects().items()
        for key, field in spec["properties"].items()
        if words in field["description"]
    }
    assert described == {row.field for row in WAITING}


def test_no_choice_is_an_enum() -> None:
    """The SDK in Go would accept nothing else."""
    fields = [field for spec in _objects().values() for field in spec["properties"].values()]
    choices = [choice for field in fields for choice in field.get("oneOf", ())]
    types = [_SCHEMA["types"][choice["$ref"].rpartition("/")[2]] for choice in choices if "$ref" in choice]
    assert types
    assert [spec for spec in types if "enum" in spec] == []
