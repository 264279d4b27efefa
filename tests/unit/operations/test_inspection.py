"""What is known before a destroy: without access to the cluster, in messages, and of people's data."""

import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

from rich.console import Console

from ebbtide.clients.clouds.interfaces import Account, CloudApiError, Contents, StoredData
from ebbtide.operations import inspection
from ebbtide.operations.access import Clouds
from ebbtide.operations.ending import destroy
from ebbtide.operations.engine.events import Step, narration
from ebbtide.operations.inspection import Inspection, Volume, inspect, remaining_volumes
from ebbtide.operations.leftovers.users import UserObject
from ebbtide.operations.work import Work
from ebbtide.text import command_line
from ebbtide.values.cloud_kind import CloudKind
from tests.unit.operations.objects import NOW, PROFILE, STATE
from tests.unit.operations.world import resource


def _kubeconfig(server: str) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }


def test_outputs_that_lead_nowhere() -> None:
    """The error names the fault, and nothing else is reported."""
    profile = PROFILE.output()
    assert inspect({}, STATE).error == "The stack has no output `kubeconfig`: running work is unknown."
    assert inspect({"kubeconfig": "{}"}, STATE).error.startswith(
        "The stack's output `placementProfile` is unreadable, and running work is unknown: "
    )
    for bad in ("no JSON", "[]", "{}"):
        error = inspect({"kubeconfig": bad, "placementProfile": profile}, STATE).error
        assert error.startswith("The cluster is unreachable, and running work is unknown: ")


def test_a_cluster_that_does_not_answer() -> None:
    """The error is reported, and nothing waits for the cluster."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        server = f"https://127.0.0.1:{taken.getsockname()[1]}"
        inspection = inspect({"kubeconfig": _kubeconfig(server), "placementProfile": PROFILE.output()}, STATE)
    assert inspection == Inspection(
        error=f"The cluster is unreachable, and running work is unknown: The API server at {server} "
        "cannot be reached (Connection refused)",
        is_unanswered=True,
    )
    assert remaining_volumes(inspection, STATE) == []


def test_a_log_has_a_line_for_what_is_gone() -> None:
    """A terminal has a line that moves, and goes at the end."""
    removals = [Step("acme:web:Site", "a", done=False), Step("acme:web:Site", "a", done=True)]
    log, screen = StringIO(), StringIO()
    for file, terminal in ((log, False), (screen, True)):
        with narration(Console(file=file, force_terminal=terminal, width=100), 1) as tell:
            for step in removals:
                tell(step)
    assert log.getvalue() == "deleted: acme:web:Site a\n"
    assert "1/1" in screen.getvalue()
    assert "Site a" in screen.getvalue()


WORK = Work(
    kind="Job", namespace="research", name="train", since=NOW - timedelta(hours=2), pods=2, pools=("spot",)
)


def test_work_is_a_line_each() -> None:
    """Each line has the location, the state and the age."""
    waiting = replace(WORK, name="second", pods=0, pools=(), queue="ours")
    elsewhere = replace(WORK, name="third", pods=1, pools=())
    bare = replace(WORK, name="fourth", pods=0, pools=())
    assert list(inspection.running_lines([WORK, waiting, elsewhere, bare], NOW)) == [
        "Unfinished work: 4 pieces, 3 pods.",
        "  Job train in research: 2 pods on spot, for 2 hours",
        "  Job second in research: pending in queue ours, for 2 hours",
        "  Job third in research: 1 pod, on none of its pools, for 2 hours",
        "  Job fourth in research: no pod, for 2 hours",
    ]
    assert list(inspection.running_lines([], NOW)) == []


def test_a_long_list_is_cut() -> None:
    """The oldest are shown, the others counted."""
    lines = list(inspection.running_lines([WORK] * 103, NOW))
    assert lines[0] == "Unfinished work: 103 pieces, 206 pods."
    assert len(lines) == 22
    assert lines[-1] == "  … and 83 more, created later."


def test_the_question() -> None:
    """The question has the number of resources and of running work."""
    assert destroy.question("dev", STATE, []) == "Destroy 3 resources of stack dev?"
    assert (
        destroy.question("dev", STATE, [WORK]) == "Destroy 3 resources of stack dev, and end 1 piece of work?"
    )
    assert (
        destroy.question("dev", STATE, [WORK], "bucket a")
        == "Destroy 3 resources of stack dev, with bucket a, and end 1 piece of work?"
    )


def test_what_is_guarded() -> None:
    """A permanent cluster needs a lifetime; any other error is the engine's message."""
    message = destroy.protected("prod", "Pulumi.prod.yaml", replace(STATE, protected=("train",)))
    assert message.startswith("Nothing was changed: train of stack prod is protected")
    assert command_line("destroy", "prod", "--confirm-name", "prod") in message
    assert "`lifetime` in Pulumi.prod.yaml" in message
    assert destroy.refused("prod", ["no such provider"]).endswith("stack prod.\nno such provider")


def test_what_is_adopted_may_stay() -> None:
    """The way that keeps adopted resources in the cloud is named before the one that deletes them."""
    state = replace(STATE, protected=("train", "data"))
    message = destroy.protected("prod", "Pulumi.prod.yaml", state, ["train"])
    assert message.startswith("Nothing was changed: train and data of stack prod are protected, and train ")
    assert message.index("adopt prod --undo") < message.index("--confirm-name prod")
    assert "lifetime" not in message


def test_what_remains() -> None:
    """Remaining buckets and disks are named; without any there is no message."""
    volume = Volume(name="pvc-1", disk="pd-1", size="10Gi", claim="research/data", retained=True)
    end = datetime(2026, 12, 5, 8, tzinfo=UTC)
    assert list(destroy.remains(["acme-checkpoints"], [volume], reservations=[("train", end)])) == [
        "Remaining resources that cost money:",
        "  bucket acme-checkpoints, with its contents, as declared (`keep`)",
        (
            "  reservation train, billed until 2026-12-05 08:00 UTC, used or not, unless Google Cloud "
            "accepts `gcloud compute future-reservations cancel train`"
        ),
        "  volume pvc-1 of claim research/data, 10Gi, disk pd-1",
    ]
    assert list(destroy.remains([], [])) == []


def test_what_users_made() -> None:
    """Deleted and kept resources have a heading each, and a long list is cut."""
    claim = UserObject(kind="PersistentVolumeClaim", namespace="research", name="data", uid="1", size="10Gi")
    service = UserObject(kind="Service", namespace="research", name="web", uid="2")
    assert list(inspection.users_objects([service, claim], keeps_volumes=True)) == [
        "Deleted first, with the load balancers and disks that they own:",
        "  Service web in research",
        "Kept, with the disks that they own:",
        "  PersistentVolumeClaim data in research, 10Gi",
    ]
    assert len(list(inspection.users_objects([service] * 30, keeps_volumes=False))) == 22
    assert list(inspection.users_objects([], keeps_volumes=False)) == []


def test_ways_through() -> None:
    """An unreachable cluster and a missing resource each have a command; without an error there is none."""
    lines = list(destroy.ways_through("dev", ["configured Kubernetes cluster is unreachable"]))
    assert lines[0].endswith(f"PULUMI_K8S_DELETE_UNREACHABLE=true {command_line('destroy', 'dev')}")
    assert "pulumi state delete URN --stack dev" in lines[1]
    assert len(list(destroy.ways_through("dev", ["the disk is in use"]))) == 1
    assert list(destroy.ways_through("dev", [])) == []


_PROJECT = Account(CloudKind.GKE, "acme-ml")
_SUBSCRIPTION = Account(CloudKind.AKS, "1-2")
_GROUP = "/subscriptions/1-2/resourceGroups/train/providers"


_BUCKET = resource("gcp:storage/bucket:Bucket", "x", id="data", inputs={"name": "data", "project": "acme-ml"})
_FILES = resource(
    "gcp:filestore/instance:Instance",
    "x",
    id="projects/acme-ml/locations/us-central1-a/instances/files",
    inputs={"name": "files", "project": "acme-ml", "fileShares": {"capacityGb": 1024, "name": "shared"}},
)
_IMAGES = resource(
    "azure-native:containerregistry:Registry",
    "x",
    id=f"{_GROUP}/Microsoft.ContainerRegistry/registries/images",
    inputs={"registryName": "images"},
)
_SHARE = resource(
    "azure-native:storage:StorageAccount",
    "x",
    id=f"{_GROUP}/Microsoft.Storage/storageAccounts/share",
    inputs={"accountName": "share", "kind": "FileStorage"},
)
_CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
_DISK = {
    "metadata": {"name": "mysql", "namespace": "katib"},
    "spec": {"resources": {"requests": {"storage": "10Gi"}}},
}
_SHARED = {**_DISK, "spec": {**_DISK["spec"], "volumeName": "data"}}
_STATE = {
    "resources": [
        _BUCKET,
        {**_BUCKET, "retainOnDelete": True},
        _FILES,
        _IMAGES,
        _SHARE,
        resource(_CLAIM, "x", id="katib/mysql", inputs=_DISK),
        resource(_CLAIM, "x", id="vision/shared", inputs=_SHARED),
        resource("gcp:container/cluster:Cluster", "x", id="c", inputs={"name": "train"}),
    ]
}


class _Inventory:
    """A project or subscription with these contents, by name."""

    def __init__(self, contents: dict[str, Contents | CloudApiError | None]) -> None:
        self._contents = contents

    def contents(self, data: StoredData) -> Contents | None:
        """Return the contents, or fail."""
        contents = self._contents[data.name]
        if isinstance(contents, CloudApiError):
            raise contents
        return contents


def _lines(**contents: Contents | CloudApiError | None) -> list[str]:
    google: Any = _Inventory(contents)
    reached = Clouds({_PROJECT: google}, {_SUBSCRIPTION: "Log in with `az login`."})
    return list(inspection.stored_lines(inspection.of_state(_STATE), reached))


def test_each_is_named_with_its_contents() -> None:
    """The count of the cloud, or why there is none; not what is kept, and the data of a claim once."""
    assert _lines(data=Contents(5_600_000_000, 1234), files=None) == [
        "Deleted with everything in it:",
        "  bucket data: 1,234 objects, 5.6 GB",
        "  file share files, 1024 GiB: its contents cannot be read",
        "  registry images: its contents cannot be read. Log in with `az login`.",
        "  file share share: its contents cannot be read. Log in with `az login`.",
        "  disk of claim mysql in katib, 10Gi: its contents cannot be read",
    ]


def test_large_empty_and_closed() -> None:
    """A bucket that was not counted to its end, an empty one, and one whose objects the user may not list."""
    assert _lines(data=Contents(9000, 10_000, is_partial=True), files=None)[1] == (
        "  bucket data: at least 10,000 objects, 9.0 kB"
    )
    assert _lines(data=Contents(0, 0), files=None)[1] == "  bucket data: empty"
    denied = CloudApiError("storage.googleapis.com returned status 403.", 403)
    assert _lines(data=denied, files=None)[1] == (
        "  bucket data: its contents cannot be read. storage.googleapis.com returned status 403."
    )


def test_names_in_a_question() -> None:
    """The first three, and the number of the others."""
    data = inspection.of_state(_STATE)
    assert inspection.named(data) == "bucket data, file share files, registry images and 2 more"
    assert inspection.named(data[:1]) == "bucket data"
    assert inspection.named([]) == ""
