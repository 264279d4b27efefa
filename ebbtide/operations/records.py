"""Records in the outputs of a stack's state, which the engine keeps until the next `pulumi up` or the last
resource is deleted.
"""

from collections.abc import Mapping
from typing import Any

from ebbtide.analysis.urns import STACK_TYPE
from ebbtide.clients.kubernetes.parts import part, parts


def record(deployment: Mapping[str, Any], name: str) -> Any:
    """Return a record; None if there is none.

    Args:
        deployment: the `deployment` of `pulumi stack export`.
        name: name of the output.
    """
    stacks = (item for item in parts(deployment, "resources") if item["type"] == STACK_TYPE)
    return next((part(stack, "outputs").get(name) for stack in stacks), None)


def with_record(deployment: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return a state with a record; unchanged if the state has no resource of the stack itself.

    Args:
        deployment: as for `record`.
        name: name of the output.
        value: its JSON value; None to remove the record.
    """

    def updated(stack: Mapping[str, Any]) -> Mapping[str, Any]:
        others = {key: output for key, output in part(stack, "outputs").items() if key != name}
        return {**stack, "outputs": others if value is None else {**others, name: value}}

    resources = [
        updated(item) if item["type"] == STACK_TYPE else item for item in parts(deployment, "resources")
    ]
    return {**deployment, "resources": resources}
