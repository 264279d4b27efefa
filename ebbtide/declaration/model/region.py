"""Regions that a declaration adds to Ebbtide's tables."""

from typing import Annotated

from pydantic import BeforeValidator

from ebbtide.declaration.catalog.clouds import azure_region
from ebbtide.declaration.model.base import Declared, Name, Zone


def _named(value: object) -> object:
    return azure_region(value) if isinstance(value, str) else value


AzureRegion = Annotated[Name, BeforeValidator(_named, json_schema_input_type=Name)]
"""A region by its name, or on Azure as it is displayed."""


class Region(Declared):
    """An addition to Ebbtide's table of locations: a newer region, or more zones or hardware of a listed
    one."""

    name: AzureRegion
    """Name in the cloud: `us-central1`, `eastus`."""
    zones: tuple[Zone, ...] = ()
    """Zones that the table lacks. GKE: their names, including AI zones; AKS: their numbers, `1`."""
    offers: tuple[Name, ...] = ()
    """Machine types, machine families and accelerator types offered in all of its zones: `a2-highgpu-1g`,
    `c4`, `nvidia-b200`."""
