"""The stories with what their pools can also declare: each is accepted, previewed, and says what it is."""

import copy
from typing import Any

import pytest

from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.preview_document import PoolReport
from ebbtide.analysis.preview.words import accelerator_words, capacity_limit
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.queue_objects import fallback_objects
from ebbtide.placement.queueing import flavor
from tests.declarations import Declaration, pool
from tests.repository import ROOT, declaration
from tests.synth import synth


def _story(name: str) -> Declaration:
    return copy.deepcopy(declaration(ROOT / "examples" / name / f"Pulumi.{name}.yaml"))


def _previewed(story: Declaration, name: str) -> PoolReport:
    recording = synth(story)
    assert recording.says("error") == ()
    return next(report for report in preview_of(recording).pools if report.name == name)


def test_scarce_gpus_fall_back_from_a_reservation_to_flex_start_to_spot() -> None:
    """The tricks of the queued-gpus story, in the order that Google recommends for training."""
    story = _story("queued-gpus")
    a100 = {"machine": "a2-highgpu-1g", "nodes": {"max": 2}, "zones": ["us-central1-a"]}
    held = {"kind": "reservation", "affinity": "any-then-fail"}
    names = ["a100-held", "a100-flex", "a100", "a100-spot"]
    capacities = [held, "flex-start", "on-demand", "spot"]
    story["pools"] += [
        {**a100, "name": name, "capacity": capacity} for name, capacity in zip(names, capacities, strict=True)
    ]
    story["queues"].append({"name": "training", "pools": names, "fallback": True})
    (order,) = fallback_objects(declare(story))
    assert order["spec"]["priorities"] == [{"nodepools": [name]} for name in names]
    first = _previewed(story, "a100-held")
    assert capacity_limit(first) == "reservation any, and no other machines"
    assert first.falls_back_to == tuple(names[1:])


def test_experiments_of_a_lab_share_gpus() -> None:
    """Eight small experiments on each T4 of the research cluster, and the quota of eight."""
    story = _story("research-cluster")
    pool(story, "gpu")["accelerator"]["gpuSharingConfig"] = {"maxSharedClientsPerGpu": 8}
    cluster = declare(story)
    gpu = next(item for item in cluster.resolved_pools if item.name == "gpu")
    assert flavor(gpu).offer({"gpu": 8})["nvidia.com/gpu"] == 64
    report = _previewed(story, "gpu")
    assert accelerator_words(report) == "1 x nvidia-tesla-t4 (time-sharing by 8)"
    assert report.accelerator is not None
    assert report.accelerator.requestable == 8


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"ephemeralStorageLocalSsdConfig": {"localSsdCount": 2}}, "2 local SSDs for ephemeral storage"),
        (
            {"secondaryBootDisks": [{"diskImage": "global/images/trainer", "mode": "CONTAINER_IMAGE_CACHE"}]},
            "image streaming, preloaded images of trainer",
        ),
        ({"gvnic": True}, "gVNIC"),
    ],
)
def test_training_starts_faster_and_writes_faster(changes: dict[str, Any], shown: str) -> None:
    """Checkpointed training with its image on the node, or its working directory on local SSDs."""
    story = _story("checkpointed-training")
    pool(story, "preemptible-gpu-pool").update(changes)
    report = _previewed(story, "preemptible-gpu-pool")
    assert ", ".join(text for text in (report.local_disks, *report.settings) if text) == shown


def test_training_on_a_tpu_slice() -> None:
    """The checkpointed training on 16 chips, whose four nodes come together."""
    story = _story("checkpointed-training")
    story["pools"].append(
        {"name": "tpus", "machine": "ct5lp-hightpu-4t", "tpuTopology": "4x4", "capacity": "spot"}
    )
    report = _previewed(story, "tpus")
    assert accelerator_words(report) == "4 x tpu-v5-lite-podslice (slices of 4x4)"
    assert (report.nodes.minimum, report.nodes.maximum) == (0, 4)


def test_spot_steps_on_the_temporary_disk() -> None:
    """The archives that the aks-spot story downloads are written to the machine itself."""
    story = _story("aks-spot")
    spot = next(item for item in story["pools"] if item.get("capacity") and item.get("role") != "system")
    spot |= {"machine": "Standard_D8ds_v5", "disk": {"kubeletDiskType": "Temporary"}}
    assert _previewed(story, spot["name"]).local_disks == "the temporary disk for ephemeral storage"
