"""The component `ebbtide:index:Cluster`."""

from typing import Any

import pulumi

from ebbtide.declaration.model.package_schema import CLUSTER

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
        topology = program.deploy(declared.cluster, self, opts.providers)
        self.outputs = {
            key: waiting.resolved(value) for key, value in program.outputs(declared.cluster, topology).items()
        }
        self.register_outputs(self.outputs)
