"""An image with the code of a folder: a base image, and one layer, pushed with the user's credentials.

The image depends on the digests of the base and of the code alone, and its tag names both: the same code is
pushed once. Source: OCI image specification 1.1, config, layer and manifest.
"""

import base64
import binascii
import gzip
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from ebbtide.work.registries.repository import (
    Credentials,
    Manifest,
    Reference,
    RegistryError,
    Repository,
    digest_of,
)

_OCI: Final = "application/vnd.oci.image"
_DOCKER: Final = "application/vnd.docker"
_LAYERS: Final = {
    f"{_OCI}.manifest.v1+json": f"{_OCI}.layer.v1.tar+gzip",
    f"{_DOCKER}.distribution.manifest.v2+json": f"{_DOCKER}.image.rootfs.diff.tar.gzip",
}
"""Media type of a compressed layer, by that of its image's manifest."""
_INDEXES: Final = {f"{_OCI}.index.v1+json", f"{_DOCKER}.distribution.manifest.list.v2+json"}
_TAG_LENGTH: Final = 20

Document = dict[str, Any]
_DOCKER_HUB: Final = {"registry-1.docker.io": "https://index.docker.io/v1/"}
"""Docker's key for Docker Hub, by the host of its registry."""
_TOKEN: Final = "<token>"  # noqa: S105 # marks an identity token, which has no user name


@dataclass(frozen=True, slots=True)
class CodeImage:
    """An image to push, or one that its registry already has.

    Attributes:
        name: its name, pinned by digest.
        base: the base image's name, pinned by digest.
        manifest: its manifest; empty if the registry has the image.
        layer: its own layer, compressed.
        base_layers: digests and sizes of the base's layers.
    """

    name: str
    tag: str
    base: Reference
    manifest: str = ""
    config: bytes = b""
    layer: bytes = b""
    base_layers: tuple[tuple[str, int], ...] = ()


def code_image(
    base: str, repository: str, layer: bytes, credentials: Credentials, architecture: str = "amd64"
) -> CodeImage:
    """Return the image of a layer on a base image; nothing is pushed.

    Args:
        base: name of the base image.
        repository: repository of the image, with its registry.
        layer: the layer, a tar archive.
        credentials: returns the user's credentials for a registry.
        architecture: architecture of the nodes, such as `amd64`.

    Raises:
        RegistryError: the base image does not exist or is for another platform, or a registry rejects a
            request.
    """
    source, target = Reference.parse(base), Reference.parse(repository)
    diff = digest_of(layer)
    with (
        Repository(source, credentials) as origin,
        Repository(target, credentials, pushing=True) as destination,
    ):
        digest = source.digest or origin.digest(source.tag)
        if digest is None:
            raise _missing(source)
        pinned = Reference(source.name, source.host, source.repository, source.tag, digest)
        tag = hashlib.sha256(f"{digest} {diff} {architecture}".encode()).hexdigest()[:_TAG_LENGTH]
        if existing := destination.digest(tag):
            return CodeImage(f"{repository}:{tag}@{existing}", tag, pinned)
        manifest = _of_platform(origin, origin.manifest(digest), base, architecture)
        document = json.loads(manifest.content)
        settings: Document = json.loads(origin.blob(document["config"]["digest"]))
        if settings.get("architecture", architecture) != architecture:
            raise _no_variant(base, architecture)
        config = _extended_config(settings, diff)
    compressed = gzip.compress(layer, mtime=0)
    text = _extended_manifest(document, manifest.media_type, config, compressed)
    return CodeImage(
        f"{repository}:{tag}@{digest_of(text.encode())}",
        tag,
        pinned,
        text,
        config,
        compressed,
        tuple((item["digest"], item["size"]) for item in document["layers"]),
    )


def _ignored(copied: int, total: int) -> None:
    """Ignore the progress: a library prints nothing."""


def push_code(
    base: str,
    repository: str,
    layer: bytes,
    credentials: Credentials,
    architecture: str,
    on_copy: Callable[[int, int], object] = _ignored,
) -> str:
    """Push the image of a layer on a base image, unless its repository has it; return its name.

    Arguments and errors are those of `code_image` and `push`.
    """
    image = code_image(base, repository, layer, credentials, architecture)
    push(image, credentials, on_copy)
    return image.name


def push(image: CodeImage, credentials: Credentials, on_copy: Callable[[int, int], object]) -> None:
    """Push an image, the layers of its base that its registry does not have among it; the manifest last.

    Args:
        credentials: returns the user's credentials for a registry.
        on_copy: called before each copied layer of the base, with the bytes that are copied and all to copy.

    Raises:
        RegistryError: a registry rejects a request or does not answer.
    """
    if not image.manifest:
        return
    target = Reference.parse(image.name)
    with ExitStack() as stack:
        source = stack.enter_context(Repository(image.base, credentials))
        destination = stack.enter_context(Repository(target, credentials, pushing=True))
        missing = [item for item in dict(image.base_layers).items() if not destination.has_blob(item[0])]
        copied, total = 0, sum(size for _, size in missing)
        for digest, size in missing:
            on_copy(copied, total)
            destination.copy(source, digest)
            copied += size
        destination.upload(image.layer)
        destination.upload(image.config)
        destination.set_manifest(image.tag, image.manifest)


def _no_variant(base: str, architecture: str) -> RegistryError:
    return RegistryError(
        f"Image {base} has no variant for linux/{architecture}, the platform of the nodes: name another with "
        "--image."
    )


def _of_platform(origin: Repository, manifest: Manifest, base: str, architecture: str) -> Manifest:
    """Return the manifest for the nodes' platform."""
    if manifest.media_type in _INDEXES:
        entries: Sequence[Document] = json.loads(manifest.content)["manifests"]
        for entry in entries:
            platform: Document = entry.get("platform") or {}
            if (platform.get("os"), platform.get("architecture")) == ("linux", architecture):
                return origin.manifest(entry["digest"])
        raise _no_variant(base, architecture)
    if manifest.media_type not in _LAYERS:
        raise RegistryError(
            f"Image {base} has a manifest of type {manifest.media_type}, which cannot be extended: name an "
            "image in OCI's or Docker's format with --image."
        )
    return manifest


def _extended_config(config: Document, diff: str) -> bytes:
    rootfs: Document = config["rootfs"]
    history = [*config.get("history", ()), {"created_by": "ebbtide run", "comment": "code of a folder"}]
    return _bytes(
        {**config, "rootfs": {**rootfs, "diff_ids": [*rootfs["diff_ids"], diff]}, "history": history}
    )


def _extended_manifest(document: Document, media_type: str, config: bytes, layer: bytes) -> str:
    added = {"mediaType": _LAYERS[media_type], "size": len(layer), "digest": digest_of(layer)}
    return _bytes(
        {
            **{key: value for key, value in document.items() if key != "annotations"},
            "mediaType": media_type,
            "config": {**document["config"], "size": len(config), "digest": digest_of(config)},
            "layers": [*document["layers"], added],
        }
    ).decode()


def _bytes(document: Document) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _missing(image: Reference) -> RegistryError:
    return RegistryError(
        f"Image {image.name} does not exist: {image.host}/{image.repository} has no tag {image.tag}. Check "
        "its name, or name another with --image."
    )


@cache
def user_credentials(host: str) -> tuple[str, str] | None:
    """Return user name and password for a registry; None for anonymous access.

    For a registry of Google Cloud or Azure they are a short-lived token of the user's login to the cloud, for
    any other those of `docker login`.

    Raises:
        CredentialsError: the user is not logged in to the cloud.
        CloudApiError: the cloud does not answer.
    """
    if host == "gcr.io" or host.endswith((".gcr.io", ".pkg.dev")):
        from ebbtide.clients.clouds.google import google_login  # noqa: PLC0415

        return google_login()
    if host.endswith(".azurecr.io"):
        from ebbtide.clients.clouds.azure import azure_login  # noqa: PLC0415

        return azure_login(host)
    return docker_login(host)


def docker_login(host: str) -> tuple[str, str] | None:
    """Return user name and password for a registry from Docker's configuration; None without any.

    `docker login` or a credential helper keeps them (Docker docs, docker login, credential stores and
    credential helpers, 2026).
    """
    directory = os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"
    try:
        configuration: Any = json.loads(Path(directory, "config.json").read_bytes())
    except (OSError, ValueError):
        return None
    match configuration:
        case {"credHelpers": {**helpers}} if isinstance(helper := helpers.get(host), str):
            return _from_helper(helper, host)
        case {"credsStore": str(helper)}:
            return _from_helper(helper, _DOCKER_HUB.get(host, host))
        case {"auths": {**entries}}:
            return _decoded(entries.get(_DOCKER_HUB.get(host, host)))
        case _:
            return None


def _decoded(entry: object) -> tuple[str, str] | None:
    match entry:
        case {"auth": str(encoded)}:
            try:
                user, colon, password = base64.b64decode(encoded).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                return None
            return (user, password) if colon else None
        case _:
            return None


def _from_helper(helper: str, host: str) -> tuple[str, str] | None:
    """Ask a credential helper, which reads the registry from its standard input."""
    program = shutil.which(f"docker-credential-{helper}")
    if program is None:
        return None
    done = subprocess.run([program, "get"], input=host, capture_output=True, text=True, check=False)  # noqa: S603
    try:
        answer: Any = json.loads(done.stdout)
    except ValueError:
        return None
    match answer:
        case {"Username": str(user), "Secret": str(secret)} if user != _TOKEN:
            return user, secret
        case _:
            return None
