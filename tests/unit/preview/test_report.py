"""The preview document says all that was recorded, and no secret."""

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest
from pulumi import Output, ResourceOptions
from pydantic import ValidationError

from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.preview_document import VERSION, Preview, ResourceReport
from ebbtide.analysis.preview.words import queue_rows
from ebbtide.values.documents import json_schema
from tests.contract.flips import with_value
from tests.declarations import GKE, only
from tests.synth import synth
from tests.unit.recording.programs import Part, run


def _preview(program: Callable[[], object], **config: str) -> Preview:
    return preview_of(run(program, **config))


def _named(preview: Preview, name: str) -> ResourceReport:
    (resource,) = [resource for resource in preview.resources if resource.name == name]
    return resource


def _everything() -> None:
    acme = gcp.Provider("acme", project="acme")
    part = Part("part", ResourceOptions(provider=acme, protect=True))
    cluster = gcp.container.Cluster(
        "train",
        name="train",
        location="us-central1-a",
        remove_default_node_pool=True,
        opts=ResourceOptions(parent=part),
    )
    gcp.container.NodePool(
        "work",
        name="work",
        cluster=cluster.name,
        location="us-central1-a",
        autoscaling=gcp.container.NodePoolAutoscalingArgs(total_min_node_count=0, total_max_node_count=4),
        node_config=gcp.container.NodePoolNodeConfigArgs(
            machine_type="a2-highgpu-1g", spot=True, metadata={"token": Output.secret("hunter22")}
        ),
        opts=ResourceOptions(parent=part, deleted_with=cluster, protect=False),
    )
    gcp.compute.Network(
        "net",
        name="net",
        description=Output.concat("for ", cluster.endpoint),
        opts=ResourceOptions(parent=part),
    )
    gcp.compute.Network.get("old", "projects/acme/global/networks/old")
    gcp.container.get_cluster(name="other", location="us-central1", project="acme")
    pulumi.export("password", Output.secret("hunter22"))
    pulumi.export("version", cluster.master_version)
    pulumi.export("endpoint", cluster.endpoint)
    pulumi.log.warn("open to all", resource=cluster)
    pulumi.log.error("too many")
    pulumi.log.info("made it")


@pytest.fixture(scope="module")
def preview() -> Preview:
    """Return the preview of a program with every kind of value."""
    return preview_of(run(_everything), ["Pulumi.dev.yaml takes values from an environment."])


def test_resources_with_options(preview: Preview) -> None:
    """Every option that affects a resource is listed."""
    work, cluster, part = (_named(preview, name) for name in ("work", "train", "part"))
    assert work.kind == "resource"
    assert work.parent == part.urn
    assert work.provider == _named(preview, "acme").urn
    assert work.depends_on == (cluster.urn,)
    assert work.deleted_with == cluster.urn
    assert not work.protect
    assert cluster.protect
    assert work.inputs["nodeConfig"]["machineType"] == "a2-highgpu-1g"
    assert [_named(preview, name).kind for name in ("part", "acme", "old")] == [
        "component",
        "provider",
        "read",
    ]


def test_no_secret_is_in_the_document(preview: Preview) -> None:
    """In its place stands that there is one, and where."""
    text = preview.model_dump_json()
    assert "hunter22" not in text
    work = _named(preview, "work")
    assert work.inputs["nodeConfig"]["metadata"]["token"] == "[secret]"  # noqa: S105 - that is the mask
    assert work.secrets == ("nodeConfig.metadata.token",)
    assert preview.outputs["password"] == "[secret]"  # noqa: S105


def test_assumptions_are_listed(preview: Preview) -> None:
    """By resource and by function, with what stands for the cloud's answer; and where it got to."""
    by_source = {assumption.of: assumption for assumption in preview.assumptions}
    assert by_source[_named(preview, "train").urn].answers["endpoint"] == "192.0.2.10"
    call = by_source["gcp:container/getCluster:getCluster"]
    assert call.args == {"location": "us-central1", "name": "other", "project": "acme"}
    assert call.answers["endpoint"] == "192.0.2.10"
    assert _named(preview, "net").assumed_inputs == ("description",)
    assert "endpoint" in _named(preview, "train").assumed


def test_a_queue_has_the_pool_of_its_flavor() -> None:
    """A flavor with another name than its pool's is shown with the pool and the price of its GPUs."""
    gpus = with_value(only(GKE, machine="a2-highgpu-1g", capacity="spot"), "addons", {"kueue": {}})
    plain, named = (
        preview_of(synth(declaration)).queues
        for declaration in (gpus, with_value(gpus, "pools.1.resourceFlavor", "nvidia"))
    )
    assert {quota.flavor for queue in named for quota in queue.quotas} == {"nvidia"}
    assert queue_rows(named) == queue_rows(plain)
    assert all(row.gpu_hour != "-" for row in queue_rows(named))


def test_warnings_and_messages(preview: Preview) -> None:
    """Gaps of the preview come first; mere information is separate."""
    assert [(message.severity, message.text) for message in preview.warnings] == [
        ("warning", "Pulumi.dev.yaml takes values from an environment."),
        ("error", "too many"),
        ("warning", "open to all"),
    ]
    assert preview.warnings[2].urn == _named(preview, "train").urn
    assert [message.text for message in preview.messages] == ["made it"]


def test_counts(preview: Preview) -> None:
    """Resources are counted by operation and by type."""
    counts = preview.counts
    assert (counts.resources, counts.created, counts.components, counts.providers) == (6, 3, 1, 1)
    assert counts.by_type["gcp:container/nodePool:NodePool"] == 1


def test_aliases_of_the_package_are_left_out() -> None:
    """A provider's package gives each resource the names of its type in all API versions."""
    import pulumi_azure_native as azure  # noqa: PLC0415 - slow to import, and for this test alone

    def program() -> None:
        azure.resources.ResourceGroup(
            "group", resource_group_name="g", opts=ResourceOptions(aliases=[pulumi.Alias(name="old")])
        )

    assert _named(_preview(program), "group").aliases == ("name=old",)


def test_secret_answers_are_masked() -> None:
    """An assumed output that the program declares secret is no less secret for it."""

    def program() -> None:
        gcp.container.Cluster(
            "train",
            name="train",
            location="us-central1-a",
            opts=ResourceOptions(additional_secret_outputs=["masterAuth"]),
        )

    (assumption,) = _preview(program).assumptions
    assert assumption.answers["masterAuth.clusterCaCertificate"] == "[secret]"


def test_the_document_is_its_schema(preview: Preview) -> None:
    """The document is parsed back unchanged, every field is documented, and additional fields are refused."""
    text = preview.model_dump_json()
    assert Preview.model_validate_json(text) == preview
    with pytest.raises(ValidationError):
        Preview.model_validate({**json.loads(text), "extra": 1})
    schema = json_schema(Preview)
    assert schema["properties"]["version"]["const"] == VERSION
    parts: list[dict[str, Any]] = [schema, *schema["$defs"].values()]
    undocumented = [
        f"{part['title']}.{name}"
        for part in parts
        for name, field in part.get("properties", {}).items()
        if "description" not in field
    ]
    assert undocumented == []
    assert all("description" in part for part in parts)
