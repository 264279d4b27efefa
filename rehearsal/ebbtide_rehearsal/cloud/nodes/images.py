"""The code in images of registries on this machine, for pods that run as processes."""

import io
import json
import tarfile
from pathlib import Path, PurePosixPath

from ebbtide.registries.reference import Reference

_WHITEOUT = ".wh."


def unpack(image: str, root: Path) -> list[str]:
    """Write the last layer of an image below a directory; return its top directories in the container.

    That layer is the code of `ebbtide run`; those below it have programs, which are this machine's. Nothing
    is written for an image of a registry elsewhere.

    Args:
        image: name of the image.
        root: the directory.

    Raises:
        RegistryError: the image does not exist, or the registry does not answer.
    """
    if not image.startswith(("localhost:", "localhost/")):
        return []
    from ebbtide.registries.repository import Repository  # noqa: PLC0415 - the extra registry, for such images

    reference = Reference.parse(image)
    with Repository(reference, lambda _: None) as repository:
        manifest = json.loads(repository.manifest(reference.version).content)
        layer = repository.blob(manifest["layers"][-1]["digest"])
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        entries = [entry for entry in archive if not PurePosixPath(entry.name).name.startswith(_WHITEOUT)]
        archive.extractall(root, entries, filter="data")
    return sorted({f"/{PurePosixPath(entry.name).parts[0]}" for entry in entries})
