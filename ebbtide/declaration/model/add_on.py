"""Base class of the add-ons, and the static facts about each of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from ebbtide.declaration.catalog import PINS, Footprint, Pin, footprint
from ebbtide.declaration.model.base import Declared, Name

READ: Final = ("get", "list", "watch")
WORK: Final = (*READ, "create", "update", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Right:
    """A rule of a Kubernetes Role.

    Attributes:
        group: API group.
        resources: resources of the group.
        verbs: allowed verbs.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOnSpec:
    """Facts about an add-on, from which the rest of its setup is derived.

    The name is also the key of its version and minimum Kubernetes version (`catalog/versions.py`, NAME and
    NAME-kubernetes), its requests and disks (`catalog/data/footprints.csv`, NAME, and NAME-node for its
    DaemonSets), its component (`components/addons/NAME.py`), and its programs and manifests in a rehearsal
    (`ebbtide_rehearsal/addons/NAME.py`).

    Attributes:
        name: name of its field in the declaration.
        title: display name.
        namespace: namespace that is created for it; empty if the cloud runs the add-on.
        runs_work: True if work runs in that namespace, which is then treated as a tenant's.
        frameworks: its Kueue frameworks (integrations). The add-on is installed before Kueue.
        rights: rights of a team's members in their namespace.
        namespace_labels: labels of the namespaces that its work runs in.
        calls: label key of pods in teams' namespaces that its controller connects to; empty for none.
        untolerating: name of its pods that tolerate no taint, for messages; empty for none.
    """

    name: str
    title: str
    namespace: str = ""
    runs_work: bool = False
    frameworks: tuple[str, ...] = ()
    rights: tuple[Right, ...] = ()
    namespace_labels: Mapping[str, str] = field(default_factory=dict[str, str])
    calls: str = ""
    untolerating: str = ""

    @property
    def footprint(self) -> Footprint:
        """Requests, disks and webhooks of its cluster-wide workloads."""
        return footprint(self.name)

    @property
    def least_kubernetes(self) -> str | None:
        """Minimum Kubernetes version; None if it runs on every supported version."""
        pin = PINS.get(f"{self.name}-kubernetes")
        return pin.version if pin else None


class AddOn(Declared):
    """An add-on as declared: its fields, and the facts about it."""

    spec: ClassVar[AddOnSpec]

    @property
    def is_installed(self) -> bool:
        """True if the stack installs it."""
        return True

    @property
    def copies(self) -> int:
        """Number of instances, each with the requests of its footprint."""
        return 1


class ReleasedAddOn(AddOn):
    """An add-on of a pinned release, which alone was tested. A declaration may name a newer one."""

    version: Name | None = None
    """A newer version than the pinned one, with its `digest`. It was not tested with Ebbtide. Default: the
    pinned version."""
    digest: Name | None = None
    """Digest of the version's chart for Kueue (`sha256:…`); for the others, the commit of the version's
    tag."""

    @property
    def pin(self) -> Pin:
        """The release that was tested."""
        return PINS[self.spec.name]

    @property
    def is_tested(self) -> bool:
        """True if the release that was tested is installed."""
        return self.version is None

    @property
    def release(self) -> Pin:
        """The release to install."""
        if self.version is None:
            return self.pin
        digest = self.digest or ""
        kind = {"digest": digest} if self.pin.digest else {"commit": digest}
        return replace(self.pin, version=self.version, **kind)
