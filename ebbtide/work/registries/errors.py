"""Errors of container registries."""

from ebbtide.errors import EbbtideError


class RegistryError(EbbtideError):
    """A container registry rejects a request or does not answer, or an image cannot be extended."""

    rule = "registry"
