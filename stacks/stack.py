"""The stack: the cluster of its configuration, deployed on the declared cloud, and its outputs."""

from pathlib import Path

import pulumi

from components import program
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.project.source import NAMESPACE, find_misplaced, parsed


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
    """Deploy the declared cluster, and all that is declared to run on it, and return the stack's outputs."""
    return program.outputs(declaration, program.deploy(declaration))
