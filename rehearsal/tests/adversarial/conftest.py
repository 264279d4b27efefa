"""The tools, and the objects of a stack with every add-on and two teams."""

from typing import Any

import pytest
from rich.console import Console

from ebbtide_rehearsal.control_plane import NAMES
from ebbtide_rehearsal.tools import Tools, ensure, narration
from rehearsal.tests.adversarial import stack
from rehearsal.tests.adversarial.suite import MEMBER
from tests.declarations import Declaration
from tests.running import full

_CONTROLLERS = ("katib-controller", "trainer-controller-manager", "jobset")


@pytest.fixture(scope="session")
def declaration() -> Declaration:
    """Every add-on, two teams whose namespaces the stack creates, and one in an existing namespace."""
    teams: list[dict[str, Any]] = [
        {"name": "vision", "members": [MEMBER], "interactive": True},
        {"name": "speech", "members": ["bob@acme.example"]},
        {"name": "research", "members": [MEMBER], "namespace": {"name": "default", "create": False}},
    ]
    return full("gke") | {"teams": teams}


@pytest.fixture(scope="session")
def tools() -> Tools:
    """The control plane, the add-ons' controllers, and what renders their objects."""
    with narration(Console(stderr=True)) as say:
        return ensure([*NAMES, *stack.TOOLS, *_CONTROLLERS], on_step=say)


@pytest.fixture(scope="session")
def parts(
    declaration: Declaration, tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> list[stack.Part]:
    """All objects of the stack, in order."""
    return list(stack.parts(declaration, tools, tmp_path_factory.mktemp("values")))
