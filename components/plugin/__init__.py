"""The provider of `ebbtide:index:Cluster` and `ebbtide:index:NodePool`, for programs in any language."""

from .provider import main

__all__ = ["main"]
