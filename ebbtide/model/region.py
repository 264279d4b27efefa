"""Regions that a declaration adds to Ebbtide's own tables."""

from ebbtide.model.base import Declared, Name


class Region(Declared):
    """A region that is newer than Ebbtide's table of locations, or has more zones or hardware than that
    lists. What is written here adds to the table."""

    name: Name
    """As its cloud spells it: `us-central1`, `eastus`."""
    zones: tuple[Name, ...] = ()
    """Zones that the table lacks. GKE: their names, AI zones among them; AKS: their numbers, `"1"`."""
    offers: tuple[Name, ...] = ()
    """Machine types, machine families and accelerator types that are offered in all of its zones:
    `a2-highgpu-1g`, `c4`, `nvidia-b200`."""
