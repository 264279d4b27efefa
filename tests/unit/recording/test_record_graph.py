"""Recorded resources are those that the engine would create."""

from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest
from pulumi import ResourceOptions

from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.recording import Recording
from tests.unit.recording.programs import Part, network, run


def test_inputs_have_the_providers_names() -> None:
    """Fields are recorded as the provider is sent them, whole numbers as such."""

    def program() -> None:
        gcp.container.NodePool(
            "t4",
            cluster="train",
            autoscaling=gcp.container.NodePoolAutoscalingArgs(total_max_node_count=4),
            node_config=gcp.container.NodePoolNodeConfigArgs(machine_type="n1-highmem-8", spot=True),
        )

    pool = run(program).named("t4")
    assert pool.type == "gcp:container/nodePool:NodePool"
    assert pool.inputs == {
        "autoscaling": {"totalMaxNodeCount": 4},
        "cluster": "train",
        "nodeConfig": {"machineType": "n1-highmem-8", "spot": True},
    }
    assert pool.custom
    assert not pool.read
    assert pool.version is not None


def test_urns_are_the_engines() -> None:
    """A URN has the types of all parents; the stack's type is not among them."""

    def program() -> None:
        outer = Part("outer", type_="test:parts:Outer")
        inner = Part("inner", ResourceOptions(parent=outer), type_="test:parts:Inner")
        network("net", ResourceOptions(parent=inner))
        network("alone")

    recording = run(program)
    assert recording.named("alone").urn == "urn:pulumi:dev::shop::gcp:compute/network:Network::alone"
    assert recording.named("net").urn == (
        "urn:pulumi:dev::shop::test:parts:Outer$test:parts:Inner$gcp:compute/network:Network::net"
    )


def test_parents_children_and_types() -> None:
    """A recording is walked up and down by URN; the stack itself is not one of its resources."""

    def program() -> None:
        part = Part("part")
        network("a", ResourceOptions(parent=part))
        network("b", ResourceOptions(parent=part))

    recording = run(program)
    part = recording.named("part")
    assert part.parent is None
    assert not part.custom
    assert recording.children() == (part,)
    assert {child.name for child in recording.children(part.urn)} == {"a", "b"}
    assert recording.ancestors(recording.named("a").urn) == (part,)
    assert len(recording.of_type("gcp:compute/network:Network")) == 2
    assert recording[part.urn] is part
    assert part.urn in recording
    assert len(recording) == 3


def test_a_name_that_is_not_there_or_not_alone() -> None:
    """Looking up by name fails with a count, and a type tells namesakes apart."""

    def program() -> None:
        Part("same")
        network("same")

    recording = run(program)
    with pytest.raises(LookupError, match="2 resources named 'same'"):
        recording.named("same")
    with pytest.raises(LookupError, match="no resources named 'other'"):
        recording.named("other")
    assert not recording.named("same", "test:parts:Part").custom


def test_a_resource_that_is_read_has_a_urn_too() -> None:
    """One that is read and one that is made cannot share a name either."""

    def program() -> None:
        network("net")
        gcp.compute.Network.get("net", "projects/acme/global/networks/net")

    with pytest.raises(ProgramError, match=r"gcp:compute/network:Network::net\. Pulumi would reject"):
        run(program)


def _inheriting(options: ResourceOptions, own: ResourceOptions | None = None) -> Recording:
    def program() -> None:
        middle = Part("middle", ResourceOptions.merge(options, None))
        inner = Part("inner", ResourceOptions(parent=middle))
        network("net", ResourceOptions.merge(own, ResourceOptions(parent=inner)))

    return run(program)


@pytest.mark.parametrize("option", ["protect", "retain_on_delete"])
def test_an_option_flows_to_children_that_have_none(option: str) -> None:
    """The SDK passes `protect` on, and the engine `retainOnDelete`; a child's own counts."""
    options: Any = ResourceOptions
    on, off = (options(**{option: value}) for value in (True, False))
    recordings = (_inheriting(on), _inheriting(on, off), _inheriting(ResourceOptions()))
    assert [getattr(item.named("net"), option) for item in recordings] == [True, False, False]


def test_deleted_with_flows_to_children_that_have_none() -> None:
    """The SDK does not pass it on: the engine does, through every level, and a child's own counts."""

    def program() -> None:
        cluster, other = network("cluster"), network("other")
        part = Part("part", ResourceOptions(deleted_with=cluster))
        inner = Part("inner", ResourceOptions(parent=part))
        network("leaf", ResourceOptions(parent=inner))
        network("exception", ResourceOptions(parent=inner, deleted_with=other))
        network("apart")

    recording = run(program)
    cluster, other = recording.named("cluster"), recording.named("other")
    assert recording.named("leaf").deleted_with == cluster.urn
    assert recording.named("inner").deleted_with == cluster.urn
    assert recording.named("exception").deleted_with == other.urn
    assert recording.named("apart").deleted_with is None


def test_other_options_do_not_flow() -> None:
    """`ignoreChanges` and its like stay where they were written."""
    recording = _inheriting(
        ResourceOptions(ignore_changes=["name"], replace_on_changes=["name"], delete_before_replace=True)
    )
    assert recording.named("middle").ignore_changes == ("name",)
    net = recording.named("net")
    assert net.ignore_changes == ()
    assert net.replace_on_changes == ()
    assert net.delete_before_replace is None


def test_options_are_recorded() -> None:
    """Every option that affects a resource is recorded, under the provider's names."""

    def program() -> None:
        before = network("before")
        network(
            "net",
            ResourceOptions(
                protect=True,
                ignore_changes=["auto_create_subnetworks"],
                replace_on_changes=["name"],
                delete_before_replace=False,
                retain_on_delete=True,
                deleted_with=before,
                replace_with=[before],
                custom_timeouts=pulumi.CustomTimeouts(create="60m", delete="5m"),
                aliases=[
                    "urn:pulumi:dev::shop::gcp:compute/network:Network::old",
                    pulumi.Alias(name="older"),
                    pulumi.Alias(parent=None),
                ],
                import_="projects/acme/global/networks/net",
            ),
        )

    recording = run(program)
    net, before = recording.named("net"), recording.named("before")
    assert net.protect
    assert net.ignore_changes == ("autoCreateSubnetworks",)
    assert net.replace_on_changes == ("name",)
    assert net.delete_before_replace is False
    assert net.retain_on_delete
    assert net.deleted_with == before.urn
    assert net.replace_with == (before.urn,)
    assert net.timeouts == {"create": "60m", "delete": "5m"}
    assert net.aliases == (
        "urn:pulumi:dev::shop::gcp:compute/network:Network::old",
        "name=older",
        "parent=the stack",
    )
    assert net.import_id == "projects/acme/global/networks/net"
    assert net.id == "projects/acme/global/networks/net"
    assert "id" not in net.assumed


def test_dependencies_are_urns() -> None:
    """Explicit ones, and those that follow from an input, by input."""

    def program() -> None:
        net, other = network("net"), network("other")
        gcp.compute.Subnetwork(
            "sub", network=net.id, ip_cidr_range="10.0.0.0/20", opts=ResourceOptions(depends_on=[other])
        )

    recording = run(program)
    net, other, sub = (recording.named(name) for name in ("net", "other", "sub"))
    assert set(sub.dependencies) == {net.urn, other.urn}
    assert sub.property_dependencies == {"network": (net.urn,)}


def test_providers_are_urns() -> None:
    """An explicit provider, also one that comes through a component, is recorded by URN; the ambient one is
    None.
    """

    def program() -> None:
        acme = gcp.Provider("acme", project="acme")
        part = Part("part", ResourceOptions(providers=[acme]))
        network("inherits", ResourceOptions(parent=part))
        network("has", ResourceOptions(provider=acme))
        network("ambient")

    recording = run(program)
    acme = recording.named("acme")
    assert acme.type == "pulumi:providers:gcp"
    assert recording.named("has").provider == acme.urn
    assert recording.named("inherits").provider == acme.urn
    assert recording.named("ambient").provider is None
    assert recording.named("has").id == "projects/acme/global/networks/has"


def test_component_outputs_are_recorded() -> None:
    """Registered outputs of a component are recorded; a resource among them is recorded by its id."""

    def program() -> None:
        part = Part("part")
        net = network("net", ResourceOptions(parent=part, provider=gcp.Provider("acme", project="acme")))
        part.register_outputs({"network": net, "name": net.name, "count": 2})

    assert run(program).named("part").outputs == {
        "network": "projects/acme/global/networks/net",
        "name": "net",
        "count": 2,
    }


def test_a_resource_that_is_read() -> None:
    """A read resource is marked, and gets its name and location from its id."""

    def program() -> None:
        old = gcp.container.Cluster.get("old", "projects/acme/locations/europe-west4/clusters/old")
        pulumi.export("place", pulumi.Output.concat(old.project, "/", old.location, "/", old.name))

    recording = run(program)
    old = recording.named("old")
    assert old.read
    assert old.id == "projects/acme/locations/europe-west4/clusters/old"
    assert recording.outputs["place"] == "acme/europe-west4/old"
    assert "name" not in old.assumed
    assert "endpoint" in old.assumed


def test_a_provider_made_component_is_opaque() -> None:
    """A Helm chart is one resource: its children are made by its provider, which does not run."""
    import pulumi_kubernetes as k8s  # noqa: PLC0415 - slow to import, and for this test alone

    def program() -> None:
        chart = k8s.helm.v4.Chart("kueue", chart="oci://registry.k8s.io/kueue/charts/kueue", version="0.19.2")
        pulumi.export("resources", chart.resources)

    recording = run(program)
    chart = recording.named("kueue")
    assert chart.remote
    assert not chart.custom
    assert chart.inputs["version"] == "0.19.2"


def test_hooks_are_noted_and_no_port_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK would start a gRPC server for the engine to call hooks on."""
    monkeypatch.delattr("grpc.aio.server")

    def program() -> None:
        hook = pulumi.ResourceHook("drain", lambda _args: None)
        network("net", ResourceOptions(hooks=pulumi.ResourceHookBinding(before_delete=[hook])))

    assert run(program).named("net").hooks == {"before_delete": ("drain",)}


def test_transforms_are_said_not_to_run() -> None:
    """A preview without them would show resources that are never created."""

    def program() -> None:
        network("net", ResourceOptions(transforms=[lambda _args: None]))
        pulumi.runtime.register_resource_transform(lambda _args: None)

    recording = run(program)
    assert {(message.text, message.urn) for message in recording.says("warning")} == {
        ("Its transforms do not run in an offline preview.", recording.named("net").urn),
        ("The stack's resource transforms do not run in an offline preview.", None),
    }


def test_a_transform_of_the_state_is_not_warned_of() -> None:
    """A preview has no state, so a transform with `needs_state` changes nothing that it shows."""

    def ignore_after_a_refresh(_args: pulumi.ResourceTransformArgs) -> None:
        return None

    setattr(ignore_after_a_refresh, "needs_state", True)  # noqa: B010 - a function has no such attribute

    def program() -> None:
        network("net", ResourceOptions(transforms=[ignore_after_a_refresh]))

    assert run(program).says("warning") == ()


def test_registration_order_is_the_same_each_time() -> None:
    """Parents come before children, and two runs agree, so that documents can be compared."""

    def program() -> None:
        for i in range(5):
            part = Part(f"part-{i}")
            nets = [network(f"net-{i}-{j}", ResourceOptions(parent=part)) for j in range(3)]
            network(f"last-{i}", ResourceOptions(parent=part, depends_on=nets))

    first, second = run(program), run(program)
    assert [resource.urn for resource in first] == [resource.urn for resource in second]
    registered: set[str | None] = {None}
    for resource in first:
        assert resource.parent in registered
        registered.add(resource.urn)
