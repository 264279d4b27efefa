"""The declaration's types as a Python program writes them."""

import runpy

import pytest

from ebbtide.model import DeclarationError, Pool, Queue, QueueUse, Site, Spot, Team
from ebbtide.model.site import CloudKind
from tests.repository import ROOT


def test_the_typed_examples_run() -> None:
    """What pyright accepts also runs, and words and objects make the same pool."""
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
    assert written.model_dump(by_alias=True) == {"queue": "a100", "as": "big"}


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
            'pools: pools is the text "t4", and a list is wanted.',
        ),
        (
            lambda: Team(name="vision", queues=[3]),  # pyright: ignore[reportArgumentType]
            "queues[0]: queues[0] is the number 3, and ",
        ),
    ],
)
def test_a_constructor_refuses_in_the_declarations_words(make: object, message: str) -> None:
    """A wrong argument is a fault with its path, as in YAML."""
    assert callable(make)
    with pytest.raises(DeclarationError) as refused:
        make()
    assert str(refused.value).startswith(message)
