"""The stack of a declaration and its outputs."""

from typing import assert_never

import pulumi

from components import program
from ebbtide.model import Aks, Cluster, Gke


def build(declaration: Cluster) -> dict[str, pulumi.Input[object]]:
    """Deploy the declared cluster on its cloud and return the stack's outputs."""
    match declaration.cloud:
        case Gke():
            from stacks import gke  # noqa: PLC0415 - a stack loads the provider of its own cloud alone

            topology = gke.build(declaration)
        case Aks():
            from stacks import aks  # noqa: PLC0415 - a stack loads the provider of its own cloud alone

            topology = aks.build(declaration)
        case _:
            assert_never(declaration.cloud)
    return program.outputs(declaration, topology)
