"""A cluster's lifetime on Pulumi's mocks."""
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false

from datetime import UTC, datetime

import pulumi
import pytest

from components.topology import Lifetime, expires
from ebbtide.declaration.model.cluster import Lifetime as Declared
from ebbtide.values import clock
from tests.unit.mocks.mocked import GKE, Mocks

_STASH = "pulumi:index:Stash"


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixed time of the update."""
    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 11, 22, 12, tzinfo=UTC))


def _expiry(hours: int) -> str:
    """Return the expiry of a lifetime."""
    found: list[str] = []

    @pulumi.runtime.test
    def program() -> pulumi.Output[None]:
        return Lifetime("train-lifetime", hours).expires.apply(found.append)

    program()
    return found[0]


def test_the_first_up_is_stored(mocks: Mocks) -> None:
    """A lifetime begins with the first update, whose time the stack's state keeps."""
    assert _expiry(8) == "2026-11-22T20:00Z"
    (stash,) = mocks.of_type(_STASH)
    assert stash["input"] == "2026-11-22T12:00Z"


def test_a_later_update_extends_nothing(mocks: Mocks) -> None:
    """The stored time of the first update determines the expiry, with the hours that are declared now."""
    mocks.existing[_STASH] = {"output": "2026-11-20T06:00Z"}
    assert _expiry(12) == "2026-11-20T18:00Z"


@pulumi.runtime.test
def test_a_permanent_cluster_has_no_expiry(mocks: Mocks) -> None:
    """A declaration without a lifetime stores no time; one with a lifetime stores it below the cluster."""
    cluster = pulumi.ComponentResource("test:index:Cluster", "train")
    assert expires("train", GKE, cluster) is None
    assert mocks.of_type(_STASH) == []
    ephemeral = GKE.model_copy(update={"lifetime": Declared(hours=1)})
    assert expires("train", ephemeral, cluster) is not None
