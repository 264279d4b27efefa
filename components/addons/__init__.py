"""Add-ons, the same on both clouds."""

from .addons import Addons, AddonsArgs, has_add_ons

__all__ = ["Addons", "AddonsArgs", "has_add_ons"]
