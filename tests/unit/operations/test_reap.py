"""Expired stacks, from the states of a backend, and later expiries."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any, cast

import pytest
from rich.console import Console

from ebbtide.analysis.policy.settings import Level, Limits, Policy
from ebbtide.clients.clouds import connect
from ebbtide.clients.clouds.interfaces import Account, CloudApiError, CloudResource
from ebbtide.operations.ending import expiry
from ebbtide.operations.ending.expiry import ReapOutcome, check_clock, check_policy, expired, extension
from ebbtide.operations.engine.backend import Backend
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.leftovers.cloud import idle_cost
from ebbtide.values import clock
from ebbtide.values.cloud_kind import CloudKind
from tests.unit.operations.objects import STATE
from tests.unit.policy.stacks_in_memory import GKE, resource, system_pool

_NOW = datetime(2026, 11, 22, 20, 0, tzinfo=UTC)


def _exported(name: str, expires: str) -> dict[str, Any]:
    shared = {"custom": True, "outputs": {"name": name}}
    cloud = [
        {"urn": item.urn, "type": item.type, "inputs": dict(item.inputs), **shared}
        for item in (resource(GKE, custom=True), system_pool(custom=True))
    ]
    urn = "urn:pulumi:dev::ebbtide::ebbtide:stack:Lifetime::l"
    life = {"urn": urn, "type": "ebbtide:stack:Lifetime", "outputs": {"expires": expires}}
    return {"version": 3, "deployment": {"resources": [life, *cloud]}}


class _States:
    """A backend of exported states; a sentence for one that is unreadable."""

    def __init__(self, **states: dict[str, Any] | str) -> None:
        self.stacks = tuple(states)
        self._states = states

    def exported_by_all(self) -> list[dict[str, Any]]:
        return [self.exported(name) for name in self.stacks]

    def exported(self, name: str) -> dict[str, Any]:
        state = self._states[name]
        if isinstance(state, str):
            raise OperationError(state)
        return state

    def opened(self, name: str) -> str:
        return name


def test_the_longest_expired_comes_first() -> None:
    """With its cluster and its cost; one whose state is unreadable is listed too."""
    states = _States(
        late=_exported("train-late", "2026-11-22T20:00Z"),
        early=_exported("train-early", "2026-11-22T08:00Z"),
        new=_exported("train-new", "2026-11-22T20:01Z"),
        fresh={"version": 3, "deployment": {}},
        torn="The state is torn.",
    )
    report = expired(cast("Backend", states), _NOW)
    assert [(stack.stack, stack.outcome) for stack in report.stacks] == [
        ("early", ReapOutcome.EXPIRED),
        ("late", ReapOutcome.EXPIRED),
        ("torn", ReapOutcome.UNREADABLE),
    ]
    early, _, torn = report.stacks
    assert early.clusters == ("train-early",)
    assert early.idle_usd_per_hour is not None
    assert early.idle_usd_per_hour > 0
    assert torn.error == "The state is torn."
    assert not report.is_done


def test_a_free_control_plane_does_not_make_a_cost_known() -> None:
    """The cost of a cluster on AKS with a free control plane and a pool without a known price is unknown."""
    cluster = {"location": "eastus", "resourceName": "train", "sku": {"tier": "Free"}}
    pool = {
        "resourceName": "train",
        "agentPoolName": "new",
        "vmSize": "Standard_New",
        "mode": "System",
        "count": 1,
    }
    inputs = {"ManagedCluster": cluster, "AgentPool": pool}
    resources = [
        {"urn": f"urn:pulumi:dev::ebbtide::{type_}::{name}", "type": type_, "custom": True, "inputs": values}
        for name, values in inputs.items()
        for type_ in (f"azure-native:containerservice:{name}",)
    ]
    assert idle_cost({"version": 3, "deployment": {"resources": resources}}) is None


def _resource(name: str, expires: str = "2026-11-22t19-59z", **more: Any) -> CloudResource:
    kind = more.pop("kind", "disk")
    return CloudResource(kind=kind, id=name, name=name, location="z", expires=expires, **more)


class _Inventory:
    """A project whose address is extended with the first deletion, and whose disk `stuck` is in use."""

    def __init__(self, patch: pytest.MonkeyPatch, *resources: CloudResource) -> None:
        self.resources = list(resources)

        def connected(_account: Account) -> _Inventory:
            return self

        patch.setattr(connect, "inventory", connected)
        patch.setattr(clock, "now", lambda: _NOW)

    def check(self) -> None:
        """Have access."""

    def expiring(self) -> list[CloudResource]:
        return self.resources

    def delete(self, resource: CloudResource) -> None:
        if resource.name == "stuck":
            raise CloudApiError("It is in use.")
        self.resources = [
            replace(item, expires="2126-11-22t20-00z") if item.kind == "address" else item
            for item in self.resources
            if item.id != resource.id
        ]

    def unmanaged(self, *deployed: dict[str, Any]) -> list[expiry.Unmanaged]:
        """Return its expired resources that are in no state, beside a stack."""
        states = _States(dev={"version": 3, "deployment": {"resources": list(deployed)}})
        groups, notes = expiry.find_unmanaged(cast("Backend", states), [Account(CloudKind.GKE, "acme")], _NOW)
        assert notes == []
        return groups


@pytest.mark.parametrize(
    "label", ["someday", "2026-11-22", "2026-13-22t20-00z", "8h-after-the-first-up", "-"]
)
def test_a_label_that_cannot_be_read_never_expires(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is deleted because its label was changed by hand."""
    resources = _resource("odd", label), _resource("old"), _resource("new", "2026-11-22t20-01z")
    (group,) = _Inventory(monkeypatch, *resources).unmanaged()
    assert group.resources == [resources[1]]


def test_resources_of_a_known_cluster_are_not_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk is its cluster's; a node pool may be of another stack."""
    disk, pool = (_resource(kind, kind=kind, cluster="TRAIN") for kind in ("disk", "node pool"))
    cluster = {"urn": "urn:pulumi:dev::e::t::c", "type": "t", "id": "train"}
    (group,) = _Inventory(monkeypatch, disk, pool).unmanaged(cluster)
    assert group.resources == [pool]


def test_resources_in_a_known_resource_group_are_not_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything in a stack's resource group is the stack's, regardless of case; other groups are not."""
    root = "/subscriptions/S/resourceGroups"
    disk = "providers/Microsoft.Compute/disks/d"
    listed = [_resource(f"{root}/{path}") for path in (f"ML/{disk}", f"other/{disk}", "ml-2")]
    component = {"urn": "urn:pulumi:dev::e::t::c", "type": "t"}
    group = {"urn": "urn:pulumi:dev::e::t::g", "type": "t", "id": f"{root}/ml"}
    (unmanaged,) = _Inventory(monkeypatch, *listed).unmanaged(component, group)
    assert unmanaged.resources == listed[1:]


def test_a_stack_that_became_permanent_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lifetime was removed after the report: the check under the lock ends the destroy."""

    def destroy(_stack: Any, options: Any, _console: Any) -> None:
        options.check(STATE)

    monkeypatch.setattr(expiry, "destroy", destroy)
    monkeypatch.setattr(expiry, "check_clock", lambda: None)
    states = _States(dev=_exported("train", "2026-11-22T08:00Z"))
    backend = cast("Backend", states)
    (stack,) = expiry.reap(backend, expired(backend, _NOW), [], _NOW, Console(file=StringIO())).stacks
    assert (stack.outcome, stack.error) == (
        ReapOutcome.EXTENDED,
        "Nothing was changed: stack dev no longer expires.",
    )


def test_an_expiry_is_read_again_before_each_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resource that is extended while others are deleted is kept."""
    inventory = _Inventory(monkeypatch, _resource("old"), _resource("extended", kind="address"))
    (group,) = inventory.unmanaged()
    lines: list[str] = []
    outcomes = {
        item.name: error for item, error in expiry.delete_unmanaged(group, lines.append, deletes_data=True)
    }
    assert outcomes == {"old": "", "extended": None}
    assert [item.name for item in inventory.resources] == ["extended"]
    assert lines[1] == "address extended is kept: it has been extended, or is gone."


def test_what_holds_data_is_kept_and_what_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each resource has its outcome: kept without --delete-data, failed with the error, or destroyed."""
    listed = [_resource(name, holds_data=name == "data") for name in ("data", "stuck", "old")]
    groups = _Inventory(monkeypatch, *listed).unmanaged()
    backend = cast("Backend", _States())
    report = expiry.reap(backend, expired(backend, _NOW, groups), groups, _NOW, Console(file=StringIO()))
    outcomes = {item.name: (item.outcome.value, item.error) for item in report.resources}
    assert outcomes == {"data": ("kept", ""), "stuck": ("failed", "It is in use."), "old": ("destroyed", "")}
    assert not report.is_done


@pytest.mark.parametrize(("minutes", "words"), [(1500, "1 day ahead of"), (-90, "1 hour behind")])
def test_a_wrong_clock_is_refused(minutes: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference of a few minutes to a server's clock is none."""
    monkeypatch.setattr(clock, "difference", lambda: (timedelta(minutes=minutes), "compute.googleapis.com"))
    with pytest.raises(OperationError, match=f"clock is {words} that of compute.googleapis.com"):
        check_clock()
    monkeypatch.setattr(clock, "difference", lambda: (timedelta(minutes=4), "compute.googleapis.com"))
    check_clock()


_FIRST_UP = datetime(2026, 11, 22, 12, 7, tzinfo=UTC)
_STATE = replace(STATE, first_up=_FIRST_UP)
_DECLARED = {"lifetime": {"hours": 8}}


@pytest.mark.parametrize(
    ("now", "more", "hours"),
    [
        (1, 4, 12),  # it has not expired: from the expiry on
        (8, 4, 12),
        (9.5, 4, 14),  # from now on, and rounded up to whole hours of lifetime
        (100, 1, 101),
    ],
)
def test_hours_are_added(now: float, more: int, hours: int) -> None:
    """To the expiry, or to now if that is later."""
    extended = extension("dev", _DECLARED, _STATE, more, _FIRST_UP + timedelta(hours=now))
    assert extended.hours == hours
    assert extended.before == _FIRST_UP + timedelta(hours=8)
    assert extended.after == _FIRST_UP + timedelta(hours=hours)


def test_hours_are_added_once() -> None:
    """An extension that was written and not deployed, or not to all labels, is completed by the same
    command."""
    deployed = replace(_STATE, expires=_FIRST_UP + timedelta(hours=8))
    for written in (8, 12):
        extended = extension("dev", {"lifetime": {"hours": written}}, deployed, 4, _FIRST_UP)
        assert (extended.hours, extended.before) == (12, deployed.expires)
    assert extension("dev", {"lifetime": {"hours": 48}}, deployed, 4, _FIRST_UP).hours == 48
    interrupted = replace(deployed, expires=_FIRST_UP + timedelta(hours=12), labelled=deployed.expires)
    assert extension("dev", {"lifetime": {"hours": 12}}, interrupted, 4, _FIRST_UP).hours == 12


@pytest.mark.parametrize(
    ("declared", "state", "message"),
    [
        ({}, _STATE, "Stack dev has no lifetime: its cluster is permanent"),
        ({"lifetime": None}, _STATE, "Stack dev has no lifetime"),
        (_DECLARED, STATE, "Stack dev has no cluster that expires yet"),
    ],
)
def test_nothing_to_extend(declared: Any, state: Any, message: str) -> None:
    """A permanent cluster, and one that is not there yet."""
    with pytest.raises(OperationError, match=message):
        extension("dev", declared, state, 4, _FIRST_UP)


def test_a_policy_limits_lifetimes() -> None:
    """A lifetime above the policy's limit is refused only at the level mandatory."""
    limited = Policy(limits=Limits(lifetime_hours=24))
    check_policy("dev", limited, 24)
    check_policy("dev", Policy(), 1000)
    check_policy("dev", limited.model_copy(update={"levels": {"longest-lifetime": Level.ADVISORY}}), 25)
    with pytest.raises(OperationError, match="limits the lifetime to 24 hours"):
        check_policy("dev", limited, 25)
