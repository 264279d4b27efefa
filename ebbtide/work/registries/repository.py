"""A repository of a container registry: names of images, manifests and blobs, over the OCI distribution API,
and messages for the errors of its requests.

Requests, tokens and uploads are python-dxf's (davedoesdev/dxf 12.1, MIT). Registries on `localhost` are
addressed over plain HTTP, all others over HTTPS.
"""

import hashlib
import http
import re
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, cast

import requests
from dxf import DXF, DXFBase
from dxf.exceptions import DXFAuthInsecureError, DXFDigestMismatchError, DXFMountFailed, DXFUnauthorizedError

from ebbtide.clients.clouds.interfaces import CredentialsError
from ebbtide.errors import EbbtideError

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

    def _explained(self) -> AbstractContextManager[None]:
        return explained(f"{self.host}/{self.name}", pushing=self._pushing)

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


@contextmanager
def explained(repository: str, *, pushing: bool = False) -> Generator[None]:
    """Convert the errors of requests and python-dxf.

    Args:
        repository: the repository, with its registry.
        pushing: whether images are pushed to it.

    Raises:
        RegistryError: the registry rejects a request or does not answer.
    """
    host = repository.partition("/")[0]
    try:
        yield
    except DXFUnauthorizedError:
        raise RegistryError(_refusal(repository, http.HTTPStatus.UNAUTHORIZED, "", pushing=pushing)) from None
    except DXFAuthInsecureError:
        raise RegistryError(
            f"{host} requires a login, which would be sent unencrypted over HTTP. Use a registry with HTTPS."
        ) from None
    except DXFDigestMismatchError:
        raise RegistryError(
            f"{host} sent content that does not match its digest. Check the network's proxy, then run this "
            "again."
        ) from None
    except requests.HTTPError as error:
        status, message = status_of(error), _message(error)
        raise RegistryError(_refusal(repository, status, message, pushing=pushing)) from None
    except requests.RequestException as error:
        raise RegistryError(
            f"{host} cannot be reached ({type(error).__name__}). Check the network and its proxy, then run "
            "this again: uploaded layers stay."
        ) from None


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
