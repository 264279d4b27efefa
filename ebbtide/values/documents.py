"""Models whose JSON Schemas contain the fields' docstrings, and the base of documents for other programs."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

CONFIG: Final = ConfigDict(
    extra="forbid",
    use_attribute_docstrings=True,
    json_schema_serialization_defaults_required=True,  # every field is always written
)
"""Configuration of parts that are dataclasses."""


class Described(BaseModel):
    """A model whose JSON Schema contains the docstrings of its fields.

    They are read for a schema alone. Pydantic reads the source of every class on import, a twentieth of a
    preview's time.
    """

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> "JsonSchemaValue":
        """Add the docstrings to the properties."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for model in reversed(cls.__mro__):
            for name, text in _docstrings(model) if issubclass(model, Described) else ():
                for key in {name, cls.model_fields[name].alias} & properties.keys():
                    properties[key]["description"] = text
        return schema


def _docstrings(model: type[Described]) -> Iterator[tuple[str, str]]:
    """Yield the fields in the body of a model that have a docstring, with it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(model)))
    except OSError:  # created without source
        return
    for field, below in pairwise(cast("ast.ClassDef", tree.body[0]).body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))) if (
                name in model.model_fields
            ):
                yield name, inspect.cleandoc(text)
            case _:
                pass


class DocumentPart(Described):
    """A part of a document; it is frozen and forbids unknown keys."""

    model_config = {**CONFIG, "frozen": True, "use_attribute_docstrings": False}


def json_schema(document: Any) -> dict[str, Any]:
    """Return the JSON Schema of a document, by its model or the union of its models."""
    schema = TypeAdapter[Any](document).json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
