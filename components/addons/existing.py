"""Existing add-ons: their kinds, and Kueue's controller, are read and compared with what the stack needs."""

from collections.abc import Mapping
from typing import Any

import pulumi

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.addons import AddOnSpec
from ebbtide.declaration.model.addons import Kueue as Declared
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.placement.kueue_settings import (
    DEFINITION,
    Installation,
    controller_of,
    differences,
    installation,
)

from .add_on import Ready


class ExistingAddOnError(pulumi.RunError):
    """The stack cannot work with an existing add-on."""


class _Existing(pulumi.CustomResource):
    """An object of the installation, read and not managed."""

    spec: pulumi.Output[Any]
    data: pulumi.Output[Any]

    def __init__(
        self, name: str, kind: str, existing: pulumi.Input[str], opts: pulumi.ResourceOptions
    ) -> None:
        fields = {"data": None} if kind.endswith("ConfigMap") else {"spec": None}
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(id=existing))
        super().__init__(f"kubernetes:{kind}", name, fields, opts)


class ExistingAddOn(pulumi.ComponentResource):
    """The CustomResourceDefinitions of an existing add-on, and of Kueue ConfigMap and Deployment, which the
    webhook that converts its kinds leads to: read in every preview before anything is changed.

    What the stack installs otherwise than with Ebbtide's components is read once it exists.

    A version that is not served, or settings that make the queues impossible, end the program; other settings
    are warnings.
    """

    ready: Ready

    def __init__(
        self,
        name: str,
        spec: AddOnSpec,
        declaration: Cluster,
        opts: pulumi.ResourceOptions | None = None,
        installed_by: pulumi.CustomResource | None = None,
    ) -> None:
        super().__init__("ebbtide:addons:ExistingAddOn", name, {}, opts)
        inside = pulumi.ResourceOptions(parent=self)
        definition = "apiextensions.k8s.io/v1:CustomResourceDefinition"
        read = {
            kind: _Existing(f"{name}-{kind}", definition, _after(installed_by, kind), inside)
            for kind in spec.definitions
        }
        found = {
            kind: item.spec.apply(lambda read, kind=kind: check_served(spec, kind, read))
            for kind, item in read.items()
        }
        self.ready = (*([installed_by] if installed_by else []), *read.values())
        served = {kind: item.apply(lambda it: list(it.versions)) for kind, item in found.items()}
        self.register_outputs(
            {"served": served, "checked": self._controller(name, declaration, found[DEFINITION], inside)}
            if spec is Declared.spec
            else {"served": served}
        )

    def _controller(
        self,
        name: str,
        declaration: Cluster,
        found: pulumi.Output[Installation],
        inside: pulumi.ResourceOptions,
    ) -> pulumi.Output[bool]:
        """Read Kueue's controller."""
        config = _Existing(
            f"{name}-configuration",
            "core/v1:ConfigMap",
            found.apply(lambda it: f"{it.namespace}/{it.config_map}"),
            inside,
        )
        controller = _Existing(
            f"{name}-controller",
            "apps/v1:Deployment",
            found.apply(lambda it: f"{it.namespace}/{it.deployment}"),
            inside,
        )
        self.ready = (*self.ready, config, controller)
        return pulumi.Output.all(found, config.data, controller.spec).apply(
            lambda read: check(declaration, *read)
        )


def _after(resource: pulumi.CustomResource | None, name: str) -> pulumi.Input[str]:
    """Return a name that is known once a resource exists: a preview reads nothing before that."""
    return name if resource is None else resource.id.apply(lambda _: name)


def check_served(spec: AddOnSpec, kind: str, definition: Mapping[str, Any] | None) -> Installation:
    """Check that an existing add-on serves the version of a kind that the stack uses.

    Args:
        kind: name of the CustomResourceDefinition.
        definition: its spec; None if it was not read.

    Raises:
        ExistingAddOnError: it does not.
    """
    found, needed = installation(definition), spec.definitions[kind]
    if definition and needed not in found.versions:
        raise ExistingAddOnError(
            f"The cluster's {spec.title} does not serve {needed} of {kind}, only "
            f"{', '.join(found.versions) or 'no version'}: no such object of the stack or of its members "
            f"could be created. Have it upgraded; Ebbtide is tested with {PINS[spec.name].version}."
        )
    return found


def check(
    declaration: Cluster, found: Installation, data: Mapping[str, str] | None, spec: Mapping[str, Any] | None
) -> bool:
    """Compare an existing Kueue with what the queues depend on, and log warnings.

    Args:
        data: data of its ConfigMap; None if it was not read.
        spec: spec of its Deployment; None if it was not read.

    Returns:
        False if nothing was read.

    Raises:
        ExistingAddOnError: the queues cannot work with it; the message has every reason.
    """
    if not data or not spec:
        return False
    where = f"{found.config_map} and {found.deployment} in {found.namespace}"
    listed = list(differences(declaration, *controller_of(data, spec)))
    for difference in listed:
        if not difference.is_refused:
            pulumi.log.warn(f"{where}, {difference.fault}")
    refused = [str(difference.fault) for difference in listed if difference.is_refused]
    if refused:
        lines = "\n".join(f"  {line}" for line in refused)
        raise ExistingAddOnError(f"The queues cannot work with the cluster's Kueue ({where}):\n{lines}")
    return True
