"""The provider program."""

import json
import sys
from typing import Any, Final

import pulumi
from pulumi import provider

from ebbtide import __version__
from ebbtide.declaration.model.package_schema import CLUSTER, NODE_POOL, package_schema

from ..node_pools import constructed
from .arguments import plain
from .cluster import ClusterComponent
from .declared import declared_cluster, declared_pool
from .node_pool import NodePoolComponent

_COMPONENTS: Final = {
    CLUSTER: (declared_cluster, ClusterComponent),
    NODE_POOL: (declared_pool, NodePoolComponent),
}


class Provider(provider.Provider):
    """The provider of the package `ebbtide`: its components are validated before anything is registered."""

    def __init__(self) -> None:
        super().__init__(__version__, json.dumps(package_schema()))

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: pulumi.ResourceOptions | None = None,
    ) -> provider.ConstructResult:
        """Construct a component.

        Raises:
            pulumi.RunError: there is no such component.
        """
        if resource_type not in _COMPONENTS:
            known = ", ".join(_COMPONENTS)
            raise pulumi.RunError(
                f"The package ebbtide has no resource {resource_type}. Write one of {known}."
            )
        declared, component = _COMPONENTS[resource_type]
        state: dict[str, Any] = {}

        async def urn() -> str:
            # The SDK awaits the URN before it reads the state.
            constructed.set(name)
            created = component(
                name, declared(await plain(inputs)), inputs, options or pulumi.ResourceOptions()
            )
            state.update(created.outputs)
            return await created.urn.future() or ""

        return provider.ConstructResult(pulumi.Output.from_input(urn()), state)


def main() -> None:
    """Serve the provider to the engine, whose address is the first argument."""
    provider.main(Provider(), sys.argv[1:])
