"""The real distribution registry, as a process, and images to put in it."""

import gzip
import io
import json
import socket
import subprocess
import tarfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import trustme
import yaml

from ebbtide.work.registry import Reference, Repository, digest_of
from ebbtide_rehearsal.control_plane.plan import LOCALHOST, PortReservation
from ebbtide_rehearsal.tools.progress import narrated
from rehearsal.tests.token_server import ISSUER, SERVICE, TokenServer

OCI: Final = "application/vnd.oci.image.{}.v1+json"
DOCKER: Final = "application/vnd.docker.distribution.{}.v2+json"
_OCI_PARTS: Final = (OCI.format("config"), "application/vnd.oci.image.layer.v1.tar+gzip")
_DOCKER_PARTS: Final = (
    "application/vnd.docker.container.image.v1+json",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
)
"""Media types of a config and of a layer."""
USER: Final = ("ada", "ebbtide")
"""The user of a registry with a login."""
_PASSWORDS: Final = "ada:$2b$04$Nlkrp7LwFJ62DgdZewRFZOs5i0np82Cu4P3L1nY7t2fev0WjgbwR6\n"
_STARTS_WITHIN: Final = 600.0
Files = Mapping[str, str]


@contextmanager
def registry(
    directory: Path,
    *,
    login: bool = False,
    blocks: int = 0,
    authority: trustme.CA | None = None,
    tokens: TokenServer | None = None,
) -> Generator[str]:
    """Run a registry; yield its address.

    Args:
        directory: for its files.
        login: whether it requires the login of `USER`.
        blocks: maximum size of its files, in blocks of a shell; 0 for no limit.
        authority: issuer of its certificate; None for plain HTTP on `localhost`.
        tokens: the token server whose tokens it requires.
    """
    program = narrated(["registry"]).path("registry")
    with PortReservation(1) as reserved:
        (port,) = reserved.ports
    http: dict[str, Any] = {"addr": f"{LOCALHOST}:{port}"}
    if authority is not None:
        authority.cert_pem.write_to_path(directory / "authority.pem")
        certificate = authority.issue_cert(LOCALHOST)
        certificate.private_key_pem.write_to_path(directory / "key.pem")
        certificate.cert_chain_pems[0].write_to_path(directory / "certificate.pem")
        http["tls"] = {"key": str(directory / "key.pem"), "certificate": str(directory / "certificate.pem")}
    settings: dict[str, Any] = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(directory / "storage")}},
        "http": http,
    }
    if login:
        (directory / "passwords").write_text(_PASSWORDS)
        settings["auth"] = {"htpasswd": {"realm": "test", "path": str(directory / "passwords")}}
    if tokens is not None:
        realm = f"https://{tokens.address}/oauth2/token"
        bundle = str(directory / "authority.pem")
        settings["auth"] = {
            "token": {"realm": realm, "service": SERVICE, "issuer": ISSUER, "rootcertbundle": bundle}
        }
    configuration = directory / "registry.yml"
    configuration.write_text(yaml.safe_dump(settings))
    limited = f"ulimit -f {blocks}; " if blocks else ""
    command = ("sh", "-c", f'{limited}exec "$@"', "sh", program, "serve", configuration)
    with (directory / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait(process, port, directory / "log")
            yield f"{LOCALHOST if authority else 'localhost'}:{port}"
        finally:
            process.terminate()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection((LOCALHOST, port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def archive(files: Files) -> bytes:
    """Return a tar archive of files by path."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as written:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            written.addfile(entry, io.BytesIO(text.encode()))
    return target.getvalue()


def anonymous(_: str) -> None:
    """Return no credentials."""


def put_image(name: str, files: Files, *, kind: str = OCI, architecture: str = "amd64") -> str:
    """Push an image of one layer; return its digest.

    Args:
        name: its name.
        files: contents of its files, by path.
        kind: media types, with a place for `manifest`.
        architecture: its platform.
    """
    diff = archive(files)
    layer = gzip.compress(diff)
    config = json.dumps(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "WorkingDir": "/srv"},
            "rootfs": {"type": "layers", "diff_ids": [digest_of(diff)]},
        }
    ).encode()
    media_types = _DOCKER_PARTS if kind == DOCKER else _OCI_PARTS
    described, lower = (
        {"mediaType": media_type, "digest": digest_of(blob), "size": len(blob)}
        for media_type, blob in zip(media_types, (config, layer), strict=True)
    )
    manifest = {
        "schemaVersion": 2,
        "mediaType": kind.format("manifest"),
        "config": described,
        "layers": [lower],
    }
    return put_manifest(name, manifest, config, layer)


def put_manifest(name: str, manifest: dict[str, Any], *blobs: bytes) -> str:
    """Push a manifest and its blobs; return its digest."""
    image = Reference.parse(name)
    with Repository(image, anonymous) as repository:
        for blob in blobs:
            repository.upload(blob)
        repository.set_manifest(image.tag, json.dumps(manifest))
        digest = repository.digest(image.tag)
        assert digest is not None
        return digest


def read_image(name: str) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, str]]]:
    """Return an image's manifest, its config, and the files of each layer by path."""
    image = Reference.parse(name)
    with Repository(image, anonymous) as repository:
        manifest = json.loads(repository.manifest(image.version).content)
        config = json.loads(repository.blob(manifest["config"]["digest"]))
        layers = [_files(repository.blob(layer["digest"])) for layer in manifest["layers"]]
    return manifest, config, layers


def _files(layer: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as opened:
        return {
            entry.name: file.read().decode() if (file := opened.extractfile(entry)) else ""
            for entry in opened.getmembers()
        }
