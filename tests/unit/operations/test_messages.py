"""Messages about a stack that is to be destroyed."""

from dataclasses import replace
from datetime import timedelta

from ebbtide.operations import destroy, inspection
from ebbtide.operations.inspection import Volume
from ebbtide.operations.user_objects import UserObject
from ebbtide.operations.work import Work
from ebbtide.text import command_line
from tests.unit.operations.objects import NOW, STATE

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


def test_what_remains() -> None:
    """Remaining buckets and disks are named; without any there is no message."""
    volume = Volume(name="pvc-1", disk="pd-1", size="10Gi", claim="research/data", retained=True)
    assert list(destroy.remains(["acme-checkpoints"], [volume])) == [
        "Remaining resources that cost money:",
        "  bucket acme-checkpoints, with its contents, as declared (`keep`)",
        "  volume pvc-1 of claim research/data, 10Gi, disk pd-1",
    ]
    assert list(destroy.remains([], [])) == []


def test_held_queues() -> None:
    """A user who stops before the destroy reads which queues are held, and both ways to continue."""
    message = destroy.drained("dev", {"b", "a"})
    assert f"the queues a, b are drained. Continue with: {command_line('destroy', 'dev')}." in message
    assert "stopPolicy: None" in message


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
