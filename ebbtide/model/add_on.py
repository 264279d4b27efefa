"""The base of the add-ons, and the facts that each states about itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from ebbtide.catalog import PINS, Footprint, footprint
from ebbtide.model.base import Declared

READ: Final = ("get", "list", "watch")
WORK: Final = (*READ, "create", "update", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Right:
    """A rule of a Kubernetes Role.

    Attributes:
        group: the API group.
        resources: its resources.
        verbs: the allowed verbs.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOnSpec:
    """Facts about an add-on, from which everything around it is derived.

    By its name are also found: its version and the least Kubernetes version that it runs on
    (`catalog/versions.py`, NAME and NAME-kubernetes), its requests and disks (`catalog/data/footprints.csv`,
    NAME, and NAME-node for what it runs on each node), its component (`components/addons/NAME.py`), and its
    programs and manifests in a rehearsal (`ebbtide_rehearsal/addons/NAME.py`).

    Attributes:
        name: the name of its field in the declaration.
        title: its name in a sentence.
        namespace: the namespace that is created with it; empty for one that the cloud runs.
        runs_work: True if work runs in that namespace, which is then a tenant's like any other.
        frameworks: its kinds of work that Kueue admits, as Kueue names them. It is installed before Kueue.
        rights: of a team's members in their namespace.
        namespace_labels: labels of the namespaces that its work runs in.
        calls: label key of pods in teams' namespaces that its controller connects to; empty for none.
        untolerating: its pods that tolerate no taint, in a sentence; empty for none.
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
        """Requests, disks and webhooks of what it runs once."""
        return footprint(self.name)

    @property
    def least_kubernetes(self) -> str | None:
        """The least Kubernetes version that it runs on; None if every supported one suits."""
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
