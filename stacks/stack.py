"""The builder of a stack; projects of `ebbtide init` have these lines in their own program."""

import pulumi

from components import program


def build() -> dict[str, pulumi.Input[object]]:
    """Deploy the configured cluster, and all that is declared to run on it, and return the stack's outputs.

    Raises:
        pulumi.RunError: no cluster is declared, or it is invalid; the message lists all errors.
    """
    cluster = program.configured()
    return program.outputs(cluster, program.deploy(cluster))
