"""Names of images: registry, repository, tag and digest."""

import re
from dataclasses import dataclass
from typing import Final, Self

from ebbtide.work.registries.errors import RegistryError

_DOCKER_HUB: Final = {"docker.io", "index.docker.io"}
_DOCKER_HUB_API: Final = "registry-1.docker.io"
"""Registry of names without one (distribution/reference, normalize.go, 2026)."""
_REPOSITORY: Final = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
)
_TAG: Final = re.compile(r"\w[\w.-]{0,127}", flags=re.ASCII)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
"""Grammars of the OCI distribution specification 1.1, pulling manifests."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An image's name.

    Attributes:
        name: the name as written.
        host: the registry's host, with its port.
        repository: the repository in the registry.
        tag: the tag, by default `latest`.
        digest: the digest, which wins over the tag; empty for none.
    """

    name: str
    host: str
    repository: str
    tag: str = "latest"
    digest: str = ""

    @property
    def version(self) -> str:
        """The digest, or the tag without one."""
        return self.digest or self.tag

    @classmethod
    def parse(cls, name: str) -> Self:
        """Parse an image's name as a container runtime reads it: without a registry, it is Docker Hub's.

        Raises:
            RegistryError: it is no image's name.
        """
        rest, at, digest = name.partition("@")
        path, colon, tag = rest.rpartition(":")
        if not colon or "/" in tag:
            path, tag = rest, "latest"
        first, slash, repository = path.partition("/")
        if not slash or not (first == "localhost" or "." in first or ":" in first):
            first, repository = "docker.io", path
        if first in _DOCKER_HUB:
            first, repository = _DOCKER_HUB_API, repository if "/" in repository else f"library/{repository}"
        is_valid = _REPOSITORY.fullmatch(repository) and _TAG.fullmatch(tag)
        if not is_valid or (at and not _DIGEST.fullmatch(digest)):
            raise RegistryError(
                f"{name!r} is no image's name: write REPOSITORY:TAG or REPOSITORY@sha256:DIGEST, as in "
                "docker.io/library/python:3.13-slim."
            )
        return cls(name, first, repository, tag, digest)
