"""Promises of the components: an input or an option for each, of a whole declaration on Pulumi's mocks."""
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pulumi
import pytest
import yaml

from components import aks, gke
from components.aks.monitoring import MetricStore
from components.aks.node_pool import POOLS as AKS_POOLS
from components.gke.node_pool import POOLS as GKE_POOLS
from components.replacement import ImmutableInputError, ImmutableInputs
from components.topology import Lifetime
from ebbtide.declaration.model.declare import declare
from ebbtide.values import clock
from ebbtide.values.paths import value_at
from tests.running import full
from tests.unit.mocks.mocked import Mocks

_KEY: Final = "projects/acme-ml/locations/us-central1/keyRings/clusters/cryptoKeys/disks"
_MORE: Final[dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]] = {
    "gke": (
        {"keys": {"disks": _KEY}},
        {"name": "h200", "machine": "a3-ultragpu-8g", "gpuDirect": "rdma", "zones": ["us-central1-a"]},
        {"pipelines": {"artifacts": "bucket"}, "drivers": "daemonset"},
    ),
    "aks": (
        {"maintenance": {"window": {"start": "02:00", "duration": "6h"}}},
        {"name": "held", "machine": "Standard_D8s_v5", "capacity": {"kind": "reservation"}},
        {"logs": {}},
    ),
}
"""Fields of the cloud, a pool and add-ons, with which a whole declaration has every component."""
_PROMISES: Final[dict[str, dict[str, tuple[str, str, object]]]] = yaml.safe_load(
    (Path(__file__).parent / "promises.yaml").read_text(encoding="utf-8")
)

_MEMBERS: Final = {"gke": "vision@acme.example", "aks": "11111111-1111-1111-1111-111111111111"}
_DEPLOYED: Final[dict[str, Mocks]] = {}


def _deployed(cloud: str, mocks: Mocks) -> Mocks:
    """Return the resources of a whole declaration, made once for all promises."""
    fields, pool, addons = _MORE[cloud]
    written = full(cloud, **addons)
    written["cloud"] = written["cloud"] | fields
    written["pools"] = [*written["pools"], {"nodes": {"max": 1}} | pool]
    vision, *others = written["teams"]
    written["teams"] = [vision | {"members": [_MEMBERS[cloud]]}, *others]
    declaration = declare(written)
    package: Any = {"gke": gke, "aks": aks}[cloud]

    @pulumi.runtime.test
    def program() -> None:
        package.deploy(declaration, package.provider("cloud", declaration))

    if cloud not in _DEPLOYED:
        program()
        _DEPLOYED[cloud] = mocks
    return _DEPLOYED[cloud]


def _components(
    parent: type[pulumi.ComponentResource] = pulumi.ComponentResource,
) -> Iterator[tuple[str, str]]:
    """Yield the packages and names of components, but those for add-ons that exist."""
    for component in parent.__subclasses__():
        directory, package, *_ = f"{component.__module__}.".split(".")
        if directory == "components" and "Existing" not in component.__name__:
            yield package, component.__name__
            yield from _components(component)


def test_components_are_made_alone_on_mocks(mocks: Mocks) -> None:
    """A vault's key and a store of metrics need nothing else of a stack."""
    # Mocks cannot make its storage account: pulumi-azure-native has another type for the identities there.
    args = aks.VaultKeyArgs(
        name="train-vision-bucket-key",
        resource_group="train",
        location="eastus",
        subscription="00000000-0000-0000-0000-000000000001",
        key="https://ours.vault.azure.net/keys/data",
        vault="the-vault",
        keep=True,
        labels={},
    )
    mocks.run(lambda: aks.VaultKey("key", args))
    declaration, token = declare(full("aks")), "azure-native:containerservice:ManagedCluster"
    mocks.run(lambda: MetricStore("metrics", declaration, pulumi.CustomResource(token, "ours"), "train", {}))
    (grant,) = mocks.of_type("azure-native:authorization:RoleAssignment")
    assert grant["scope"] == "the-vault"
    (association,) = mocks.of_type("azure-native:monitor:DataCollectionRuleAssociation")
    assert association["resourceUri"] == "ours-id"


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_every_component_is_made_on_mocks(mocks: Mocks, cloud: str) -> None:
    """Pulumi's mocks, as users' tests have them, are enough for each component of a cloud and each add-on."""
    types = [args.typ for args in _deployed(cloud, mocks).resources]
    made = {name.rpartition(":")[2] for name in types if name.startswith("ebbtide:")}
    names = {name for package, name in _components() if package in (cloud, "addons")}
    assert len(names) > 15
    assert names - made == {
        "AddOnComponent",
        "InCluster",
        *(["MetricStore", "VaultKey"] if cloud == "aks" else []),
    }


def test_the_first_up_is_stored(mocks: Mocks, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lifetime begins with the first update, whose time the stack's state keeps."""
    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 11, 22, 12, tzinfo=UTC))
    mocks.run(lambda: Lifetime("train-lifetime", 8))
    (stash,) = mocks.of_type("pulumi:index:Stash")
    assert stash["input"] == "2026-11-22T12:00Z"


def _inputs(mocks: Mocks, resource: str) -> dict[str, Any]:
    """Return the inputs of the resource with the last word of a type and a name, or a name's beginning."""
    kind, name = resource.split(" ")
    found = [
        args.inputs
        for args in mocks.resources
        if args.typ.rpartition(":")[2] == kind and not args.typ.startswith("ebbtide:")
        if args.name == name or (name.endswith("-") and args.name.startswith(name))
    ]
    assert len(found) == 1, resource
    return found[0]


@pytest.mark.parametrize(
    ("cloud", "promise"),
    [(cloud, promise) for cloud in ("gke", "aks") for promise in (*_PROMISES[cloud], *_PROMISES["both"])],
)
def test_promise(mocks: Mocks, cloud: str, promise: str) -> None:
    """The named resource has the input that keeps the promise."""
    resource, path, expected = (_PROMISES[cloud] | _PROMISES["both"])[promise]
    assert value_at(_inputs(_deployed(cloud, mocks), resource), path) == expected


@pytest.mark.parametrize(
    ("cloud", "kept"),
    [
        ("gke", {"train-team-vision-bucket", "train-team-vision-images-repository"}),
        (
            "aks",
            {
                "train-team-vision-kept",
                "train-team-vision-bucket",
                "train-team-vision-container",
                "train-team-vision-images-kept",
                "train-team-vision-images-registry",
            },
        ),
    ],
)
def test_a_permanent_clusters_data_is_kept(mocks: Mocks, cloud: str, kept: set[str]) -> None:
    """Deleting the stack of a permanent cluster deletes no bucket and no registry."""
    assert kept <= _deployed(cloud, mocks).retained


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_updates_of_pools_are_checked(mocks: Mocks, cloud: str) -> None:
    """Each node pool has the hook that refuses a change for which the cloud would replace the pool."""
    hooks = _deployed(cloud, mocks).hooks
    pools = {"gke": {"train-cpu", "train-t4", "train-a100"}, "aks": {"train-cpu", "train-t4", "train-steady"}}
    assert {name for name, bound in hooks.items() if f"ebbtide:{cloud}:fixed-pool-inputs" in bound} >= pools[
        cloud
    ]


@pytest.mark.parametrize(
    ("inputs", "old", "new", "says"),
    [
        (GKE_POOLS, {"spot": True}, {"spot": False}, "spot"),
        (AKS_POOLS, {"vmSize": "Standard_D8s_v5"}, {"vmSize": "Standard_D4s_v5"}, "vmSize"),
    ],
    ids=["gke", "aks"],
)
def test_a_pool_is_not_replaced(
    inputs: ImmutableInputs, old: dict[str, Any], new: dict[str, Any], says: str
) -> None:
    """A change that needs another pool is refused, with the pool's name."""
    name = {inputs.name: "t4", "mode": "User"}
    args = pulumi.ResourceHookArgs(
        urn="", id="", name="t4", type="", new_inputs={**name, **new}, old_inputs={**name, **old}
    )
    with pytest.raises(ImmutableInputError, match=rf"node pool t4: .*{says}"):
        inputs.refuse(args)
