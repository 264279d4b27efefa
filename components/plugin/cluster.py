"""The component `ebbtide:index:Cluster`."""

from typing import Any, assert_never

import pulumi

from ebbtide.model import Aks, Cluster, Gke
from ebbtide.model.package_schema import CLUSTER

from .. import program
from .declared import Declared


class ClusterComponent(pulumi.ComponentResource):
    """A declared cluster with everything on it: the resources of a Python program, under their names.

    The cloud's provider may be among the component's `providers`; otherwise one is created for the declared
    account.
    """

    outputs: dict[str, Any]
    """The outputs of a stack."""

    def __init__(
        self, name: str, declared: Declared, inputs: pulumi.Inputs, opts: pulumi.ResourceOptions
    ) -> None:
        waiting = declared.waiting
        super().__init__(CLUSTER, name, dict(inputs), pulumi.ResourceOptions.merge(opts, waiting.options()))
        topology = _deploy(declared.cluster, self, opts.providers or {})
        self.outputs = {
            key: waiting.resolved(value) for key, value in program.outputs(declared.cluster, topology).items()
        }
        self.register_outputs(self.outputs)


def _deploy(declaration: Cluster, parent: pulumi.Resource, providers: Any) -> program.Deployed:
    inside = pulumi.ResourceOptions(parent=parent)
    match declaration.cloud:
        case Gke():
            from .. import gke  # noqa: PLC0415 - the provider of its own cloud alone

            own = "gcp" not in providers
            provider = gke.provider(f"{declaration.name}-gcp", declaration, inside) if own else None
            return gke.deploy(declaration, provider, parent)
        case Aks():
            from .. import aks  # noqa: PLC0415 - the provider of its own cloud alone

            own = "azure-native" not in providers
            azure = aks.provider(f"{declaration.name}-azure", declaration, inside) if own else None
            return aks.deploy(declaration, azure, parent)
        case _:
            assert_never(declaration.cloud)
