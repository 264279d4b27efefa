"""A made-up add-on, registered as a contributor would register one."""

import sys
from dataclasses import replace
from types import ModuleType
from typing import ClassVar

import pulumi
import pytest
from pulumi_kubernetes import helm

from components.addons.add_on import AddOnArgs, AddOnComponent
from ebbtide.declaration.catalog.resources import footprint
from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.catalog.versions import PINS, Pin
from ebbtide.declaration.model.addons import ADD_ONS, WORK, AddOn, Addons, AddOnSpec, Right
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare

CHART = "oci://registry.example.com/charts/gadget"


class Gadget(AddOn):
    """A made-up add-on, with every fact that an add-on may state."""

    spec: ClassVar = AddOnSpec(
        name="gadget",
        title="Acme Gadget",
        namespace="gadget-system",
        frameworks=("acme.example/gadgetjob",),
        rights=(Right("acme.example", ("gadgetjobs",), WORK),),
        namespace_labels={"acme.example/watched": "yes"},
        calls="acme.example/probe",
        untolerating="Gadget's probes",
    )

    gears: int = 1


class MoreAddons(Addons):
    """Add-ons with the made-up one."""

    gadget: Gadget | None = None


class MoreCluster(Cluster):
    """A cluster that may declare it."""

    addons: MoreAddons = MoreAddons()  # pyright: ignore[reportIncompatibleVariableOverride] - it is frozen


class GadgetComponent(AddOnComponent):
    """A chart."""

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args, opts)
        self.ready = (
            helm.v4.Chart(
                f"{name}-chart",
                chart=CHART,
                version=PINS["gadget"].version,
                opts=pulumi.ResourceOptions(parent=self, depends_on=args.depends_on),
            ),
        )


GadgetComponent.__name__ = "Gadget"


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the add-on: its class and field, its pins, its footprint and its component."""
    monkeypatch.setitem(ADD_ONS, "gadget", Gadget)
    monkeypatch.setitem(declare.__globals__, "Cluster", MoreCluster)
    monkeypatch.setitem(PINS, "gadget", Pin("4.5.6", "2026-11", "made up"))
    monkeypatch.setitem(PINS, "gadget-kubernetes", Pin("1.34", "2026-11", "made up"))
    known = {row["item"]: footprint(row["item"]) for row in rows("footprints")}
    known["gadget"] = replace(known["katib"], item="gadget", volumes_gib=(33,))
    known["gadget-node"] = replace(known["logs-node"], item="gadget-node")
    monkeypatch.setattr("ebbtide.declaration.catalog.resources._footprints", lambda: known)
    module = ModuleType("components.addons.gadget")
    module.__dict__["Gadget"] = GadgetComponent
    monkeypatch.setitem(sys.modules, module.__name__, module)
