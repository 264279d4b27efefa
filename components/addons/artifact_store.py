"""The store of pipelines' artifacts, as referenced by objects in the cluster."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactStore:
    """A bucket for pipelines' artifacts.

    Attributes:
        root: where artifacts are stored, as `gs://bucket/artifacts`.
        identity: annotations with which Kubernetes service accounts act as a cloud identity.
        grants: prerequisites of a step.
    """

    root: pulumi.Input[str]
    identity: Mapping[str, pulumi.Input[str]]
    grants: tuple[pulumi.Resource, ...] = ()
