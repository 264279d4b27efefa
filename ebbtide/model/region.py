"""Regions that a declaration adds to Ebbtide's tables."""

from ebbtide.model.base import Declared, Name, Zone


class Region(Declared):
    """An addition to Ebbtide's table of locations: a newer region, or more zones or hardware of a listed
    one."""

    name: Name
    """Name in the cloud: `us-central1`, `eastus`."""
    zones: tuple[Zone, ...] = ()
    """Zones that the table lacks. GKE: their names, including AI zones; AKS: their numbers, `1`."""
    offers: tuple[Name, ...] = ()
    """Machine types, machine families and accelerator types offered in all of its zones: `a2-highgpu-1g`,
    `c4`, `nvidia-b200`."""
