"""Labels and annotations of what `ebbtide run` creates, and the names of runs."""

import getpass
import json
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.parts import text
from ebbtide.values.user_files import parse_json
from ebbtide.work.names import LABEL_LENGTH
from ebbtide.work.objects import Object
from ebbtide.work.runs.listing import USER

NAME: Final = "app.kubernetes.io/name"
INSTANCE: Final = "app.kubernetes.io/instance"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
"""Recommended labels (Kubernetes docs, recommended labels, 2026)."""
OWNER: Final = "ebbtide.dev/owner"
"""Label with the user who created the work, as a label's value; the annotation `USER` has the full name."""
COMMAND: Final = "ebbtide.dev/command"
PARAMETERS: Final = "ebbtide.dev/parameters"
"""Annotations: the command as a shell would read it, and the options, as JSON."""

_REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of Kubernetes' generated names, which form no words (apimachinery, pkg/util/rand, 2026)."""
_SUFFIX: Final = 5
_LONGEST: Final = 40
"""Maximum length of the folder's part of a name: a Job's pods and indexes need the rest."""


def name_of(folder: str) -> str:
    """Return a name for a run of a folder: the folder's name with a random suffix."""
    return suffixed(application(folder))


def suffixed(name: str) -> str:
    """Return a name with a random suffix."""
    return f"{name}-{''.join(secrets.choice(_CHARACTERS) for _ in range(_SUFFIX))}"


def application(folder: str) -> str:
    """Return a folder's name as a DNS label that begins with a letter."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-")
    name = name if name[:1].isalpha() else f"run-{name}"
    return name[:_LONGEST].strip("-")


def user_of(api: Api) -> str:
    """Return the user's name in the cluster; the local user's if the API server does not tell it."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        return str(api.create(_REVIEWS, review)["status"]["userInfo"]["username"])
    except ApiError as error:
        if error.unanswered:
            raise
        return getpass.getuser()


def described(
    manifest: Object, application_name: str, user: str, command: Sequence[str], parameters: Mapping[str, Any]
) -> Object:
    """Return a Job with the labels and annotations of a run; its pods get the labels."""
    metadata: Object = manifest["metadata"]
    labels = {
        NAME: application_name,
        INSTANCE: metadata["name"],
        MANAGED_BY: "ebbtide",
        OWNER: label_value(user),
    }
    annotations = {
        USER: user,
        COMMAND: shlex.join(command),
        PARAMETERS: json.dumps(parameters, ensure_ascii=False, sort_keys=True),
    }
    template: Object = manifest["spec"]["template"]
    pod: Object = template.get("metadata", {})
    return {
        **manifest,
        "metadata": {
            **metadata,
            "labels": {**metadata.get("labels", {}), **labels},
            "annotations": {**metadata.get("annotations", {}), **annotations},
        },
        "spec": {
            **manifest["spec"],
            "template": {**template, "metadata": {**pod, "labels": {**pod.get("labels", {}), **labels}}},
        },
    }


def parameters_of(job: Object) -> Mapping[str, Any]:
    """Return the recorded options of a Job; empty if they are no JSON, as after a change by another user."""
    try:
        recorded = parse_json(text(job, "metadata", "annotations", PARAMETERS))
    except ValueError:
        return {}
    return cast("dict[str, Any]", recorded) if isinstance(recorded, dict) else {}


def label_value(value: str) -> str:
    """Return a text as a label's value: up to 63 letters, digits, `-`, `_` and `.`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", value)[:LABEL_LENGTH].strip("-._") or "unknown"
