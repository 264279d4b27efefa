"""The tools, and the objects of a stack with every add-on and two teams."""

from typing import Any

import pytest

from ebbtide_rehearsal.control_plane.plan import NAMES, CloudName
from ebbtide_rehearsal.tools.find import Tools
from ebbtide_rehearsal.tools.progress import narrated
from rehearsal.tests.adversarial import stack
from rehearsal.tests.adversarial.suite import MEMBER
from tests.declarations import BASES, Declaration
from tests.running import full

_CONTROLLERS = ("katib-controller", "trainer-controller-manager", "jobset")


@pytest.fixture(scope="session", params=BASES)
def cloud(request: pytest.FixtureRequest) -> CloudName:
    """The cloud of the stack."""
    return request.param


@pytest.fixture(scope="session")
def declaration(cloud: CloudName) -> Declaration:
    """Every add-on, teams whose namespaces the stack creates, one with small limits among them, and one in an
    existing namespace."""
    volume: dict[str, Any] = {"gke": {}, "aks": {"kind": "azure-files"}}[cloud]
    few = {"jobs": 1, "pods": 10, "experiments": 1, "objects": 3}
    teams: list[dict[str, Any]] = [
        {"name": "vision", "members": [MEMBER], "interactive": True, "volume": volume},
        {"name": "speech", "members": ["bob@acme.example"]},
        {"name": "audio", "members": [MEMBER], "limits": few},
        {"name": "many", "members": [MEMBER], "limits": {"pods": 20_000_000}},
        {"name": "balanced", "members": [MEMBER], "loadBalancers": True},
        {"name": "research", "members": [MEMBER], "namespace": {"name": "default", "create": False}},
    ]
    declared = full(cloud)
    queued = [{"name": "large", "pools": ["a100"]}] if cloud == "gke" else []
    return declared | {"teams": teams, "queues": [*declared["queues"], *queued]}


@pytest.fixture(scope="session")
def tools() -> Tools:
    """The control plane, the add-ons' controllers, and what renders their objects."""
    return narrated([*NAMES, *stack.TOOLS, *_CONTROLLERS])


@pytest.fixture(scope="session")
def parts(
    declaration: Declaration, tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> list[stack.Part]:
    """All objects of the stack, in order."""
    return list(stack.parts(declaration, tools, tmp_path_factory.mktemp("values")))
