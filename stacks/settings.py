"""The only reader of a stack's configuration."""

import pulumi

from ebbtide.model import Cluster, DeclarationError, advice, declare

NAMESPACE = "ebbtide"
"""Configuration namespace: the same whatever the project is called."""


def cluster() -> Cluster:
    """The cluster that the stack declares under `ebbtide:cluster`; what is worth a warning in it is logged.

    Raises:
        pulumi.RunError: there is none, or it has faults; all of them are in the message.
    """
    written = pulumi.Config(NAMESPACE).get_object("cluster")
    if written is None:
        raise pulumi.RunError(
            f"The stack {pulumi.get_stack()} declares no cluster. Write one under `ebbtide:cluster` in "
            f"Pulumi.{pulumi.get_stack()}.yaml; README.md has the shortest that works."
        )
    try:
        declared = declare(written, default_name=f"{pulumi.get_project()}-{pulumi.get_stack()}")
    except DeclarationError as error:
        raise pulumi.RunError(str(error)) from None
    for warning in advice(declared):
        pulumi.log.warn(str(warning))
    return declared
