"""The stack: the cluster of its configuration, deployed on the declared cloud, and its outputs."""

from pathlib import Path
from typing import assert_never

import pulumi

from components import program
from ebbtide.model import Aks, Cluster, Gke
from ebbtide.project.misplaced_keys import NAMESPACE
from ebbtide.project.source import find_misplaced, parsed


def cluster() -> Cluster:
    """Return the cluster that the stack declares under `ebbtide:cluster`; its warnings are logged.

    Raises:
        pulumi.RunError: no cluster is declared, or it is invalid; the message lists all errors.
    """
    written = pulumi.Config(NAMESPACE).get("cluster")
    if written is None:
        stack = pulumi.get_stack()
        file = f"Pulumi.{stack}.yaml"
        write = f"Write one under `ebbtide:cluster` in {file}; README.md has a minimal example."
        hints = " ".join(str(key) for key in find_misplaced(Path.cwd(), stack))
        raise pulumi.RunError(f"The stack {stack} declares no cluster. {hints or write}")
    return program.declared(parsed(written))


def build(declaration: Cluster) -> dict[str, pulumi.Input[object]]:
    """Deploy the declared cluster, and all that is declared to run on it, and return the stack's outputs.

    A stack loads the provider of its own cloud alone.
    """
    match declaration.cloud:
        case Gke():
            from components import gke  # noqa: PLC0415

            topology = gke.deploy(declaration, gke.provider(f"{declaration.name}-gcp", declaration))
        case Aks():
            from components import aks  # noqa: PLC0415

            topology = aks.deploy(declaration, aks.provider(f"{declaration.name}-azure", declaration))
        case _:
            assert_never(declaration.cloud)
    return program.outputs(declaration, topology)
