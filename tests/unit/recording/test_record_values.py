"""Secrets, unknown values and assumed ones, as they travel through a program."""

import json

import pulumi
import pulumi_azure_native as azure
import pulumi_gcp as gcp
from pulumi import Output, ResourceOptions

from ebbtide.analysis.recording.assumption_tables import is_assumed
from ebbtide.analysis.recording.values import UNKNOWN, Secret, at
from tests.unit.recording.programs import network, run


def test_a_secret_input_is_wrapped_where_it_stands() -> None:
    """The rest of the property stays readable."""

    def program() -> None:
        azure.containerservice.AgentPool(
            "pool",
            resource_group_name="group",
            resource_name_="train",
            tags={"plain": "a", "token": Output.secret("hunter22")},
        )

    pool = run(program).named("pool")
    assert pool.inputs["tags"] == {"plain": "a", "token": Secret("hunter22")}
    assert "hunter22" not in repr(pool)


def test_a_secret_of_the_configuration() -> None:
    """A secret that the program requires stays a secret everywhere."""

    def program() -> None:
        pulumi.export("password", pulumi.Config("shop").require_secret("word"))

    recording = run(program, "shop:word", shop__word="hunter22")
    assert recording.outputs["password"] == Secret("hunter22")


def test_an_output_that_the_program_declares_secret() -> None:
    """`additional_secret_outputs` wraps the recorded output, and what is computed of it."""

    def program() -> None:
        cluster = gcp.container.Cluster(
            "train",
            name="train",
            location="us-central1-a",
            opts=ResourceOptions(additional_secret_outputs=["endpoint"]),
        )
        pulumi.export("server", Output.concat("https://", cluster.endpoint))
        pulumi.export("name", cluster.name)

    recording = run(program)
    assert isinstance(recording.named("train").outputs["endpoint"], Secret)
    assert isinstance(recording.outputs["server"], Secret)
    assert recording.outputs["name"] == "train"


def test_values_without_an_assumption_are_unknown() -> None:
    """An output without an assumption stays unknown, and nothing is applied to it."""
    applied: list[object] = []

    def program() -> None:
        cluster = gcp.container.Cluster("train", name="train", location="us-central1-a")
        pulumi.export("version", cluster.master_version)
        pulumi.export("upper", cluster.master_version.apply(applied.append))
        network("net", ResourceOptions())
        gcp.compute.Network("named", name="named", description=cluster.master_version)

    recording = run(program)
    assert recording.outputs["version"] is UNKNOWN
    assert recording.outputs["upper"] is UNKNOWN
    assert recording.named("named").inputs["description"] is UNKNOWN
    assert applied == []


def test_a_secret_that_is_unknown_stays_secret() -> None:
    """Not knowing a value is not a reason to show it later."""

    def program() -> None:
        cluster = gcp.container.Cluster("train", name="train", location="us-central1-a")
        pulumi.export("version", Output.secret(cluster.master_version))

    assert run(program).outputs["version"] == Secret(UNKNOWN)


def test_an_assumed_value_is_recognised_after_its_journey() -> None:
    """Concatenated, applied to and put into JSON, it is still distinguishable from declared values."""

    def program() -> None:
        cluster = gcp.container.Cluster(
            "train",
            name="train",
            location="us-central1-a",
            control_plane_endpoints_config={"dns_endpoint_config": {"allow_external_traffic": True}},
        )
        endpoint = cluster.control_plane_endpoints_config.dns_endpoint_config.endpoint
        pulumi.export(
            "json", Output.json_dumps({"clusters": [{"server": Output.concat("https://", endpoint)}]})
        )

    recording = run(program)
    text = recording.outputs["json"]
    assert isinstance(text, str)
    assert json.loads(text) == {
        "clusters": [{"server": "https://gke-assumed-train-000000000000.us-central1.gke.goog"}]
    }
    assert is_assumed(text)
    assert "controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint" in recording.named("train").assumed


def test_inputs_are_echoed_and_not_assumed() -> None:
    """Only what the cloud adds is an assumption."""
    net = run(lambda: network("net"), gcp__project="acme").named("net")
    assert net.outputs["autoCreateSubnetworks"] is False
    assert net.outputs["name"] == "net"
    assert net.assumed == ("id", "selfLink")
    assert net.inputs == {"autoCreateSubnetworks": False, "name": "net"}


def test_an_assumption_never_overrides_what_was_asked() -> None:
    """The input wins, and the answer fills in the rest."""

    def program() -> None:
        azure.containerservice.ManagedCluster(
            "train",
            resource_group_name="group",
            resource_name_="train",
            location="westeurope",
            node_resource_group="nodes",
            identity={"type": azure.containerservice.ResourceIdentityType.SYSTEM_ASSIGNED},
        )

    cluster = run(program).named("train")
    assert cluster.outputs["nodeResourceGroup"] == "nodes"
    assert at(dict(cluster.outputs), "identity.type") == "SystemAssigned"
    assert at(dict(cluster.outputs), "identity.principalId") is not None
    assert "nodeResourceGroup" not in cluster.assumed
    assert "identity.principalId" in cluster.assumed


def test_an_unlisted_type_has_an_id_and_its_inputs() -> None:
    """Nothing is invented for it."""

    def program() -> None:
        topic = gcp.pubsub.Topic("topic", name="topic")
        pulumi.export("id", topic.id)
        pulumi.export("project", topic.project)

    recording = run(program)
    topic = recording.named("topic")
    assert topic.id == "topic-assumed-id"
    assert topic.outputs == {"name": "topic"}
    assert topic.assumed == ("id",)
    assert recording.outputs == {"id": "topic-assumed-id", "project": UNKNOWN}


def test_an_exported_resource_is_plain_data() -> None:
    """Without the mark that the SDK puts on it for the engine."""

    def program() -> None:
        pulumi.export("net", network("net"))

    exported = run(program, gcp__project="acme").outputs["net"]
    assert isinstance(exported, dict)
    assert exported["id"] == "projects/acme/global/networks/net"
    assert "@isPulumiResource" not in exported


def test_assets_are_plain_data() -> None:
    """A file that would be uploaded is recorded by its path or its text."""

    def program() -> None:
        gcp.storage.BucketObject("file", bucket="b", source=pulumi.StringAsset("hello"))

    assert run(program).named("file").inputs["source"] == {"asset": {"text": "hello"}}
