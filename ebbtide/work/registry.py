"""Images with the code of a folder in a container registry: a base image and one layer, pushed with the
user's credentials over the OCI distribution API; and messages for the errors of its requests.

An image depends on the digests of the base and of the code alone, and its tag names both: the same code is
pushed once. Source: OCI image specification 1.1, config, layer and manifest. Requests, tokens and uploads are
python-dxf's (davedoesdev/dxf 12.1, MIT). Registries on `localhost` are addressed over plain HTTP, all others
over HTTPS.
"""

import base64
import binascii
import gzip
import hashlib
import http
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Self, cast

import requests
from dxf import DXF, DXFBase
from dxf.exceptions import DXFAuthInsecureError, DXFDigestMismatchError, DXFMountFailed, DXFUnauthorizedError

from ebbtide.clients.clouds.interfaces import CredentialsError
from ebbtide.errors import EbbtideError
from ebbtide.values.paths import Object

_DOCKER_HUB: Final = {"docker.io", "index.docker.io"}
_DOCKER_HUB_API: Final = "registry-1.docker.io"
"""Registry of names without one (distribution/reference, normalize.go, 2026)."""
_REPOSITORY: Final = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
)
_TAG: Final = re.compile(r"\w[\w.-]{0,127}", flags=re.ASCII)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
"""Grammars of the OCI distribution specification 1.1, pulling manifests."""
_TIMEOUT: Final = (10.0, 300.0)
"""Seconds for a connection, and for an answer: a registry reads a whole layer before it confirms it."""
_CHUNK: Final = 1 << 20
Credentials = Callable[[str], tuple[str, str] | None]
"""Returns user name and password for a registry's host; None for anonymous access."""
_FULL: Final = ("no space left", "quota", "storage limit", "file too large")
"""Parts of the messages of a registry without free storage."""
_OCI: Final = "application/vnd.oci.image"
_DOCKER: Final = "application/vnd.docker"
_LAYERS: Final = {
    f"{_OCI}.manifest.v1+json": f"{_OCI}.layer.v1.tar+gzip",
    f"{_DOCKER}.distribution.manifest.v2+json": f"{_DOCKER}.image.rootfs.diff.tar.gzip",
}
"""Media type of a compressed layer, by that of its image's manifest."""
_INDEXES: Final = {f"{_OCI}.index.v1+json", f"{_DOCKER}.distribution.manifest.list.v2+json"}
_TAG_LENGTH: Final = 20
_DOCKER_HUB_KEYS: Final = {_DOCKER_HUB_API: "https://index.docker.io/v1/"}
"""Docker's key for Docker Hub, by the host of its registry."""
_TOKEN: Final = "<token>"  # noqa: S105 # marks an identity token, which has no user name


class RegistryError(EbbtideError):
    """A container registry rejects a request or does not answer, or an image cannot be extended."""

    rule = "registry"


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
            RegistryError: it is not an image's name.
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
                f"{name!r} is not an image's name: write REPOSITORY:TAG or REPOSITORY@sha256:DIGEST, as in "
                "docker.io/library/python:3.13-slim."
            )
        return cls(name, first, repository, tag, digest)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as a registry stores it.

    Attributes:
        media_type: its kind.
    """

    content: bytes
    media_type: str


class Repository:
    """A repository of a registry; a context manager that closes its connections.

    Its methods raise `RegistryError` if the registry rejects a request or does not answer.

    Args:
        credentials: returns the user's credentials for a registry.
        pushing: whether images are pushed to it, for the messages of errors.
    """

    def __init__(self, image: Reference, credentials: Credentials, *, pushing: bool = False) -> None:
        def log_in(client: DXFBase, response: requests.Response) -> None:
            try:
                user, password = credentials(self.host) or (None, None)
            except CredentialsError:
                if pushing:
                    raise
                user, password = None, None  # a public image
            client.authenticate(user, password, response=response)

        self.host, self.name, self._pushing = image.host, image.repository, pushing
        is_local = self.host.partition(":")[0] == "localhost"
        self._dxf = DXF(self.host, self.name, log_in, insecure=is_local, timeout=cast("float", _TIMEOUT))

    def __enter__(self) -> Self:
        self._dxf.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._dxf.__exit__(*exception)  # pyright: ignore[reportUnknownMemberType]

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Convert the errors of requests and python-dxf."""
        try:
            yield
        except DXFUnauthorizedError:
            raise RegistryError(self._refused(http.HTTPStatus.UNAUTHORIZED, "")) from None
        except DXFAuthInsecureError:
            raise RegistryError(
                f"{self.host} requires a login, which would be sent unencrypted over HTTP. Use a registry "
                "with HTTPS."
            ) from None
        except DXFDigestMismatchError:
            raise RegistryError(
                f"{self.host} sent content that does not match its digest. Check the network's proxy, then "
                "run this again."
            ) from None
        except requests.HTTPError as error:
            raise RegistryError(self._refused(status_of(error), _message(error))) from None
        except requests.RequestException as error:
            raise RegistryError(
                f"{self.host} cannot be reached ({type(error).__name__}). Check the network and its proxy, "
                "then run this again: uploaded layers stay."
            ) from None

    def _refused(self, status: int, message: str) -> str:
        return _refusal(f"{self.host}/{self.name}", status, message, pushing=self._pushing)

    def digest(self, tag: str) -> str | None:
        """Return the digest of a tag's manifest; None if there is none."""
        with self._explained():
            try:
                _, response = self._dxf.head_manifest_and_response(tag)
            except requests.HTTPError as error:
                if status_of(error) == http.HTTPStatus.NOT_FOUND:
                    return None
                raise
            return response.headers.get("Docker-Content-Digest") or digest_of(self.manifest(tag).content)

    def manifest(self, version: str) -> Manifest:
        """Return the manifest of a tag or a digest."""
        with self._explained():
            _, response = self._dxf.get_manifest_and_response(version)
            actual = digest_of(response.content)
            if version.startswith("sha256:") and version != actual:
                raise DXFDigestMismatchError(actual, version)
            return Manifest(response.content, response.headers["Content-Type"].partition(";")[0])

    def blob(self, digest: str) -> bytes:
        """Return a small blob."""
        with self._explained():
            return b"".join(self._chunks(digest))

    def has_blob(self, digest: str) -> bool:
        """Return whether the repository has a blob."""
        with self._explained():
            try:
                self._dxf.blob_size(digest)
            except KeyError:  # an answer without a length
                return True
            except requests.HTTPError as error:
                if status_of(error) == http.HTTPStatus.NOT_FOUND:
                    return False
                raise
            return True

    def save(self, digest: str, file: Path) -> None:
        """Write a blob to a file."""
        with self._explained(), file.open("wb") as target:
            target.writelines(self._chunks(digest))

    def _chunks(self, digest: str) -> Iterable[bytes]:
        """Return a blob's parts, checked against its digest."""
        return cast("Iterable[bytes]", self._dxf.pull_blob(digest, chunk_size=_CHUNK))

    def copy(self, source: "Repository", digest: str) -> None:
        """Copy a blob of another repository; a registry mounts its own, if it can and the user may."""
        if source.host == self.host:
            with suppress(DXFMountFailed, RegistryError), self._explained():
                self._dxf.mount_blob(source.name, digest)
                return
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "blob"
            source.save(digest, file)
            self._upload(file)

    def upload(self, content: bytes) -> None:
        """Upload a blob, unless the repository has it."""
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "blob"
            file.write_bytes(content)
            self._upload(file)

    def _upload(self, file: Path) -> None:
        # From a file, whose length is known: not every registry takes uploads of unknown length.
        with self._explained():
            self._dxf.push_blob(str(file))

    def set_manifest(self, tag: str, document: str) -> None:
        """Upload a manifest under a tag."""
        with self._explained():
            self._dxf.set_manifest(tag, document)


def digest_of(content: bytes) -> str:
    """Return the digest of a blob or a manifest."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def status_of(error: requests.HTTPError) -> int:
    """Return the HTTP status of an error; 0 without a response."""
    return error.response.status_code if error.response is not None else 0


def _refusal(repository: str, status: int, message: str, *, pushing: bool) -> str:
    host = repository.partition("/")[0]
    details = f" ({message})" if message else ""
    denied = status in {http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN}
    if not pushing and (denied or status == http.HTTPStatus.NOT_FOUND):
        return (
            f"The image is not in {repository}, or you may not pull it. Check its name; for a private "
            f"registry, log in with `gcloud auth application-default login`, `az login` or "
            f"`docker login {host}`."
        )
    if status == http.HTTPStatus.INSUFFICIENT_STORAGE or any(part in message.lower() for part in _FULL):
        return (
            f"The registry of {repository} is full{details}. Delete images that are no longer used, or let "
            "it delete untagged ones: delete_untagged_days of the team's registry."
        )
    if denied:
        return (
            f"You may not push to {repository}{details}. Ask an administrator to make you a member of the "
            "team, which grants roles/artifactregistry.writer on Google Cloud and AcrPush on Azure, or use "
            "--code-in config-map."
        )
    if status == http.HTTPStatus.NOT_FOUND:
        return (
            f"The registry of {repository} does not exist{details}. Run `pulumi up` for the stack that "
            "declares it, or use --code-in config-map."
        )
    again = " Run this again in a minute." if status == http.HTTPStatus.TOO_MANY_REQUESTS else ""
    return f"{host} returned status {status}{details}.{again}"


def _message(error: requests.HTTPError) -> str:
    """Return the registry's own message (OCI distribution specification 1.1, error codes)."""
    try:
        document = error.response.json() if error.response is not None else None
    except requests.JSONDecodeError:
        return ""
    match document:
        case {"errors": [{"code": str(code), **first}, *_]}:
            return ": ".join(str(part) for part in (code, first.get("message"), first.get("detail")) if part)
        case _:
            return ""


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
            raise RegistryError(
                f"Image {base} does not exist: {source.host}/{source.repository} has no tag {source.tag}. "
                "Check its name, or name another with --image."
            )
        pinned = Reference(source.name, source.host, source.repository, source.tag, digest)
        tag = hashlib.sha256(f"{digest} {diff} {architecture}".encode()).hexdigest()[:_TAG_LENGTH]
        if existing := destination.digest(tag):
            return CodeImage(f"{repository}:{tag}@{existing}", tag, pinned)
        manifest = _of_platform(origin, origin.manifest(digest), base, architecture)
        document = json.loads(manifest.content)
        settings: Object = json.loads(origin.blob(document["config"]["digest"]))
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
        entries: Sequence[Object] = json.loads(manifest.content)["manifests"]
        for entry in entries:
            platform: Object = entry.get("platform") or {}
            if (platform.get("os"), platform.get("architecture")) == ("linux", architecture):
                return origin.manifest(entry["digest"])
        raise _no_variant(base, architecture)
    if manifest.media_type not in _LAYERS:
        raise RegistryError(
            f"Image {base} has a manifest of type {manifest.media_type}, which cannot be extended: name an "
            "image in OCI's or Docker's format with --image."
        )
    return manifest


def _extended_config(config: Object, diff: str) -> bytes:
    rootfs: Object = config["rootfs"]
    history = [*config.get("history", ()), {"created_by": "ebbtide run", "comment": "code of a folder"}]
    return _bytes(
        {**config, "rootfs": {**rootfs, "diff_ids": [*rootfs["diff_ids"], diff]}, "history": history}
    )


def _extended_manifest(document: Object, media_type: str, config: bytes, layer: bytes) -> str:
    added = {"mediaType": _LAYERS[media_type], "size": len(layer), "digest": digest_of(layer)}
    return _bytes(
        {
            **{key: value for key, value in document.items() if key != "annotations"},
            "mediaType": media_type,
            "config": {**document["config"], "size": len(config), "digest": digest_of(config)},
            "layers": [*document["layers"], added],
        }
    ).decode()


def _bytes(document: Object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


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
            return _from_helper(helper, _DOCKER_HUB_KEYS.get(host, host))
        case {"auths": {**entries}}:
            return _decoded(entries.get(_DOCKER_HUB_KEYS.get(host, host)))
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
