"""The declaration's types as a Python program writes them."""

import copy
import runpy

import pytest

from ebbtide.declaration.model.capacity import Spot
from ebbtide.declaration.model.declare import advice, check_pool, declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.declaration.model.pool import Nodes, Pool
from ebbtide.declaration.model.rules import overrides
from ebbtide.declaration.model.site import CloudKind, Site
from ebbtide.declaration.model.tenancy import Queue, QueueUse, Team
from tests.declarations import GKE
from tests.repository import ROOT


def test_the_typed_examples_run() -> None:
    """Code that pyright accepts runs, and words and objects make the same pool."""
    api = runpy.run_path(str(ROOT / "tests/typing/api.py"))
    assert api["BY_WORD"] == api["BY_OBJECT"]
    assert api["COMPLETE"].capacity == Spot()
    assert api["GKE"].cloud is CloudKind.GKE
    assert api["AKS"] == Site(CloudKind.AKS, "eastus", "1.33")
    assert api["TEAM"].queues == (QueueUse(queue="t4"), QueueUse(queue="a100", as_="big"))
    assert api["CLUSTER"].pools[1] == api["BY_OBJECT"]


def test_a_local_queues_name_is_as_in_yaml_and_as_underscore_in_python() -> None:
    """A keyword of Python cannot be an argument's name; YAML has the plain word."""
    written = QueueUse.model_validate({"queue": "a100", "as": "big"})
    assert written == QueueUse(queue="a100", as_="big")
    assert written.model_dump(by_alias=True, exclude_none=True) == {"queue": "a100", "as": "big"}


def test_overrides_are_the_providers_names_in_python_too() -> None:
    """Overrides in Python are mappings with the provider's names, and a fault names the field."""
    overrides = {"nodeConfig": {"fastSocket": {"enabled": True}}}
    pool = Pool(name="t4", machine="n2-standard-8", overrides=overrides)
    site = Site("gke", "us-central1-a")
    sized = pool.model_copy(update={"nodes": Nodes(max=2)})
    assert check_pool(sized, site).overrides == overrides
    with pytest.raises(DeclarationError) as refused:
        check_pool(sized.model_copy(update={"overrides": {"node_config": {}}}), site)
    assert [fault.path for fault in refused.value.faults] == ["overrides.node_config"]


def test_overrides_without_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and types wait for the provider, with a warning; what is derived is refused all the same."""

    def is_checkable(_: CloudKind) -> bool:
        return False

    monkeypatch.setattr(overrides, "is_checkable", is_checkable)
    declaration = copy.deepcopy(GKE)
    declaration["pools"][1]["overrides"] = {"nodeConfig": {"gvnik": {}}}
    (warning,) = [item for item in advice(declare(declaration)) if item.rule == "provider-installed"]
    assert warning.path == "pools[1].overrides"
    assert "[gke]" in warning.fix
    declaration["pools"][1]["overrides"] = {"nodeConfig": {"spot": False}}
    with pytest.raises(DeclarationError, match="capacity"):
        declare(declaration)


def test_a_cloud_that_does_not_exist_is_refused() -> None:
    """The message lists the clouds."""
    with pytest.raises(DeclarationError) as refused:
        Site(cloud="gcp", location="us-central1-a")  # pyright: ignore[reportArgumentType]
    assert (
        str(refused.value) == "cloud: There is no cloud gcp. No pool can be checked. Write one of gke, aks."
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Pool(name="t4", capacity="spto"),  # pyright: ignore[reportArgumentType]
            "capacity: There is no capacity kind spto; did you mean spot?",
        ),
        (
            lambda: Queue(name="t4", pools="t4"),  # pyright: ignore[reportArgumentType]
            'pools: pools is the text "t4"; expected a list.',
        ),
        (
            lambda: Team(name="vision", queues=[3]),  # pyright: ignore[reportArgumentType]
            "queues[0]: queues[0] is the number 3; expected a mapping.",
        ),
    ],
)
def test_a_constructor_refuses_in_the_declarations_words(make: object, message: str) -> None:
    """A wrong argument is a fault with its path, as in YAML."""
    assert callable(make)
    with pytest.raises(DeclarationError) as refused:
        make()
    assert str(refused.value).startswith(message)
