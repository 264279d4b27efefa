"""An existing Kueue: its controller is read and compared with what the queues depend on."""

from collections.abc import Mapping
from typing import Any

import pulumi
import yaml

from ebbtide.declaration.model.addons import Kueue as Declared
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.placement.kueue_settings import CONFIG_KEY, CONFIG_MAP, DEPLOYMENT, differences

from .add_on import Ready


class ExistingKueueError(pulumi.RunError):
    """The queues cannot work with the existing Kueue."""


class _Existing(pulumi.CustomResource):
    """An object of the installation, read and not managed."""

    spec: pulumi.Output[Any]
    data: pulumi.Output[Any]

    def __init__(self, name: str, kind: str, existing: str, opts: pulumi.ResourceOptions) -> None:
        identity = pulumi.ResourceOptions(id=f"{Declared.spec.namespace}/{existing}")
        fields = {"spec": None} if kind.startswith("apps/") else {"data": None}
        opts = pulumi.ResourceOptions.merge(opts, identity)
        super().__init__(f"kubernetes:{kind}", name, fields, opts)


class ExistingKueue(pulumi.ComponentResource):
    """The ConfigMap and the Deployment of an existing Kueue, in every preview before anything is changed.

    Settings that make the queues impossible end the program with all of them; others are warnings.
    """

    ready: Ready

    def __init__(self, name: str, declaration: Cluster, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:ExistingKueue", name, {}, opts)
        inside = pulumi.ResourceOptions(parent=self)
        config = _Existing(f"{name}-configuration", "core/v1:ConfigMap", CONFIG_MAP, inside)
        controller = _Existing(f"{name}-controller", "apps/v1:Deployment", DEPLOYMENT, inside)
        checked = pulumi.Output.all(config.data, controller.spec).apply(
            lambda read: check(declaration, read[0], read[1])
        )
        self.ready = (config, controller)
        self.register_outputs({"checked": checked})


def check(declaration: Cluster, data: Mapping[str, str] | None, spec: Mapping[str, Any] | None) -> bool:
    """Compare an existing Kueue with what the queues depend on, and log warnings.

    Args:
        declaration: the declaration.
        data: data of its ConfigMap; None if it was not read.
        spec: spec of its Deployment; None if it was not read.

    Returns:
        False if nothing was read.

    Raises:
        ExistingKueueError: the queues cannot work with it; the message has every reason.
    """
    if not data or not spec:
        return False
    settings: Mapping[str, Any] = yaml.safe_load(data.get(CONFIG_KEY, "")) or {}
    container = next(iter(spec["template"]["spec"]["containers"]))
    arguments = container.get("args") or ()
    found = list(differences(declaration, settings, str(container["image"]), arguments))
    for difference in found:
        if not difference.is_refused:
            pulumi.log.warn(f"{_WHERE}, {difference.fault}")
    refused = [str(difference.fault) for difference in found if difference.is_refused]
    if refused:
        lines = "\n".join(f"  {line}" for line in refused)
        raise ExistingKueueError(f"The queues cannot work with the cluster's Kueue ({_WHERE}):\n{lines}")
    return True


_WHERE = f"{CONFIG_MAP} and {DEPLOYMENT} in {Declared.spec.namespace}"
