"""Strict validation of a program's Kubernetes objects, by a server-side dry run.

pulumi-kubernetes (4.25, provider/pkg/provider/provider.go, normalizeInputs) drops fields of built-in kinds
that its own client does not know, before the API server sees them. So the objects are those of a recording of
the program.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import UNKNOWN, leaves, revealed
from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.api import APPLY
from ebbtide_rehearsal.control_plane.discovery import Discovery, UnknownKindError

_QUERY: Final = {
    "dryRun": "All",
    "fieldManager": "ebbtide-strict",
    "fieldValidation": "Strict",
    "force": "true",
}
_ABOUT_FIELDS: Final = ("field not declared in schema", "unknown field", "duplicate field")
"""Parts of the API server's messages about fields; other refusals may come from assumed values."""


def wrong_fields(recording: Recording, api: Api) -> Iterator[str]:
    """Yield a sentence for each object of a program with a field that the API server does not know.

    Objects with unknown values are skipped, as are those of charts and kustomizations.

    Args:
        recording: a recording of the program.
        api: a cluster with the namespaces and kinds of the program.

    Raises:
        ApiError: the API server does not answer.
    """
    known = Discovery(api)
    for resource in recording:
        manifest = cast("dict[str, Any]", revealed(dict(resource.inputs)))
        values = [value for _, value in leaves(dict(resource.inputs))]
        if resource.read or "apiVersion" not in manifest or any(value is UNKNOWN for value in values):
            continue
        metadata = cast("dict[str, str]", manifest.get("metadata") or {})
        try:
            path = known.of(manifest).path(metadata.get("namespace", "default"))
            api.patch(f"{path}/{metadata['name']}", manifest, APPLY, **_QUERY)
        except UnknownKindError:
            continue  # not served any more, or not yet
        except ApiError as error:
            if any(text in str(error) for text in _ABOUT_FIELDS):
                yield f"{manifest['kind']} {metadata['name']}: {error}"
