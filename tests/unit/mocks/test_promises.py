"""Promises of the components: an input or an option for each, of a whole declaration on Pulumi's mocks."""
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from pathlib import Path
from typing import Any, Final

import pulumi
import pytest
import yaml

from components import aks, gke
from components.aks.node_pool import POOLS as AKS_POOLS
from components.gke.node_pool import POOLS as GKE_POOLS
from components.replacement import ImmutableInputError, ImmutableInputs
from ebbtide.declaration.model.declare import declare
from ebbtide.values.paths import value_at
from tests.running import full
from tests.unit.mocks.mocked import AKS, Mocks

_GKE: Final = declare(full("gke", pipelines={"artifacts": "bucket"}, drivers="daemonset"))
_PROMISES: Final[dict[str, dict[str, tuple[str, str, object]]]] = yaml.safe_load(
    (Path(__file__).parent / "promises.yaml").read_text(encoding="utf-8")
)

_DEPLOYED: Final[dict[str, Mocks]] = {}


def _deployed(cloud: str, mocks: Mocks) -> Mocks:
    """Return the resources of a whole declaration, made once for all promises."""

    @pulumi.runtime.test
    def program() -> None:
        if cloud == "gke":
            gke.deploy(_GKE, gke.provider("gcp", _GKE))
        else:
            aks.deploy(AKS, aks.provider("azure", AKS))

    if cloud not in _DEPLOYED:
        program()
        _DEPLOYED[cloud] = mocks
    return _DEPLOYED[cloud]


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
