"""The base of documents for other programs; their JSON Schemas contain the fields' docstrings."""

from typing import Final

from pydantic import BaseModel, ConfigDict

CONFIG: Final = ConfigDict(
    extra="forbid",
    use_attribute_docstrings=True,
    json_schema_serialization_defaults_required=True,  # every field is always written
)
"""Configuration of parts that are dataclasses."""


class DocumentPart(BaseModel):
    """A part of a document; it is frozen and forbids unknown keys."""

    model_config = {**CONFIG, "frozen": True}
