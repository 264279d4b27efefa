"""The store of pipelines' artifacts, as objects in the cluster refer to it."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactStore:
    """A bucket of a cloud.

    Attributes:
        root: where artifacts go, as `gs://bucket/artifacts`.
        identity: annotations of the service accounts of Kubernetes that use it, by which they act as an
            identity of the cloud.
        grants: what a step has to wait for.
    """

    root: pulumi.Input[str]
    identity: Mapping[str, pulumi.Input[str]]
    grants: tuple[pulumi.Resource, ...] = ()
