"""The base of the documents that other programs read: their JSON Schema has the fields' docstrings."""

from typing import Final

from pydantic import BaseModel, ConfigDict

CONFIG: Final = ConfigDict(
    extra="forbid",
    use_attribute_docstrings=True,
    json_schema_serialization_defaults_required=True,  # every field is always written
)
"""Configuration of the parts that are dataclasses."""


class DocumentPart(BaseModel):
    """A part of a document; frozen, unknown keys refused."""

    model_config = {**CONFIG, "frozen": True}
