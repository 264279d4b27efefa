"""Functions that a program calls are answered and written down."""

import base64
import json

import pulumi
import pulumi_azure_native as azure
import pulumi_gcp as gcp
import pytest
from pulumi import InvokeOptions, Output

from ebbtide.analysis.recording.assumption_tables import Assumptions, is_assumed
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import ASSUMPTIONS, record
from ebbtide.analysis.recording.values import UNKNOWN
from tests.unit.recording.programs import network, run


def test_an_invoke_is_answered_and_recorded() -> None:
    """A program that looks up a cluster continues, with its arguments echoed and the rest assumed."""

    def program() -> None:
        acme = gcp.Provider("acme", project="acme")
        old = gcp.container.get_cluster(
            name="old", location="europe-west1", opts=InvokeOptions(provider=acme)
        )
        pulumi.export("id", old.id)
        pulumi.export("server", old.control_plane_endpoints_configs[0].dns_endpoint_configs[0].endpoint)

    recording = run(program)
    (invocation,) = recording.invocations
    assert invocation.token == "gcp:container/getCluster:getCluster"  # noqa: S105 - a function's token
    assert invocation.args == {"location": "europe-west1", "name": "old"}
    assert invocation.provider == recording.named("acme").urn
    assert recording.outputs["id"] == "projects/acme/locations/europe-west1/clusters/old"
    assert is_assumed(str(recording.outputs["server"]))


def test_an_invoke_of_outputs_waits_for_them() -> None:
    """The output form is answered too, with its arguments resolved."""

    def program() -> None:
        cluster = gcp.container.Cluster("train", name="train", location="us-central1-a")
        result = gcp.container.get_cluster_output(name=cluster.name, location=cluster.location)
        pulumi.export("id", result.id)

    recording = run(program, gcp__project="acme")
    assert recording.outputs["id"] == "projects/acme/locations/us-central1-a/clusters/train"


def test_an_invoke_of_what_is_unknown_is_not_made() -> None:
    """The result of an invoke with an unknown argument is unknown, as in a real preview."""

    def program() -> None:
        cluster = gcp.container.Cluster("train", name="train", location="us-central1-a")
        result = gcp.container.get_cluster_output(name=cluster.master_version)
        pulumi.export("id", result.id)

    recording = run(program)
    assert recording.outputs["id"] is UNKNOWN
    assert recording.invocations == ()


def test_an_invoke_without_an_answer_is_named() -> None:
    """The message has the token, why it cannot be answered, and what to do."""

    def program() -> None:
        gcp.compute.get_image(family="cos-stable", project="cos-cloud")

    with pytest.raises(ProgramError) as caught:
        run(program)
    assert str(caught.value) == (
        "The program calls gcp:compute/getImage:getImage, for which the preview has no assumed response. "
        "Declare the value instead, or pass an assumption for that token to record()."
    )


def test_a_caller_can_bring_answers() -> None:
    """A program that asks for something of its own is previewed with an assumption of its own."""
    own = Assumptions(
        invokes={"gcp:compute/getImage:getImage": lambda call: {"name": f"{call.text('family')}-1"}}
    )
    recording = record(
        lambda: pulumi.export("image", gcp.compute.get_image(family="cos").name),
        project="shop",
        stack="dev",
        assumptions=ASSUMPTIONS | own,
    )
    assert recording.outputs["image"] == "cos-1"


def test_the_credentials_of_aks_are_a_kubeconfig() -> None:
    """Base64 of a kubeconfig that parses, with a server and no token in it."""

    def program() -> None:
        credentials = azure.containerservice.list_managed_cluster_user_credentials_output(
            resource_group_name="group", resource_name="train"
        )
        text = credentials.kubeconfigs[0].value.apply(lambda value: base64.b64decode(value).decode())
        pulumi.export("kubeconfig", text)

    text = run(program).outputs["kubeconfig"]
    assert isinstance(text, str)
    kubeconfig = json.loads(text)
    assert kubeconfig["clusters"][0]["cluster"]["server"].startswith("https://")
    assert kubeconfig["users"][0]["user"]["exec"]["command"] == "kubelogin"
    assert is_assumed(text)


def test_a_secret_of_the_configuration_is_taken_out_of_what_is_recorded() -> None:
    """The SDK unwraps secrets before it calls a function."""

    def program() -> None:
        name = pulumi.Config("shop").require_secret("cluster")
        result = gcp.container.get_cluster_output(name=Output.concat(name, "-1"), location="us-central1")
        pulumi.export("id", result.id)

    recording = run(program, "shop:cluster", shop__cluster="hunter22")
    assert recording.invocations[0].args["name"] == "[secret]-1"


def test_a_program_finds_its_own_resources_by_urn() -> None:
    """Lookups in the engine's state are answered from the recording."""

    def program() -> None:
        first = network("net")

        def again(urn: str) -> Output[str]:
            return gcp.compute.Network("net", opts=pulumi.ResourceOptions(urn=urn)).self_link

        pulumi.export("links", Output.all(first.self_link, first.urn.apply(again)))

    recording = run(program, gcp__project="acme")
    assert len(recording) == 1
    assert (
        recording.outputs["links"]
        == ["https://www.googleapis.com/compute/v1/projects/acme/global/networks/net"] * 2
    )


def test_zones_are_those_of_the_region() -> None:
    """Two regions begin at another letter than the others."""

    def program() -> None:
        for region in ("us-central1", "us-east1"):
            pulumi.export(region, gcp.compute.get_zones(region=region).names)

    assert run(program).outputs == {
        "us-central1": ["us-central1-a", "us-central1-b", "us-central1-c"],
        "us-east1": ["us-east1-b", "us-east1-c", "us-east1-d"],
    }
