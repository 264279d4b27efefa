"""Add-ons, the same on both clouds."""

from .addons import Addons, AddonsArgs, wanted

__all__ = ["Addons", "AddonsArgs", "wanted"]
