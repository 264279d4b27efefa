"""The training without a pipeline, as one Job with a volume: `python job.py | kubectl apply -f -`.

The placement profile is read from EBBTIDE_PROFILE.
"""

from pathlib import Path
from typing import Any

import yaml
from trainer import IMAGE

from ebbtide.placement import Profile
from ebbtide.work.jobs import job

CLAIM = "checkpoints"
STEPS, EVERY = 130_000_000, 1_300_000
_CALL = f"""
import os
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as initial:
    (Path(initial) / "model.json").write_text(os.environ["INITIAL"])
    copydata(initial, os.environ["CHECKPOINTS"])
with tempfile.TemporaryDirectory() as data:
    (Path(data) / "points.csv").write_text(os.environ["POINTS"])
    left = train(data, os.environ["CHECKPOINTS"], {STEPS}, {EVERY})
print(f"Trained: the points are {{left:.3f}} from the line.", flush=True)
"""


def training(profile: Profile) -> list[dict[str, Any]]:
    """Return a claim, and a Job on four GPUs of a preemptible node that resumes from the latest checkpoint.

    The Job runs the source of the steps, as kfp does: the image needs only Ebbtide.
    """
    here = Path(__file__).parent
    source = (here / "trainer.py").read_text(encoding="utf-8")
    model = (here / "initial" / "model.json").read_text(encoding="utf-8")
    points = (here / "data" / "points.csv").read_text(encoding="utf-8")
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM, "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}},
        },
        job(
            profile,
            name="issue-summaries",
            image=profile.image(*IMAGE),
            command=["python", "-c", source + _CALL],
            env={"INITIAL": model, "POINTS": points, "CHECKPOINTS": "/checkpoints/issue-summaries"},
            namespace="default",
            pool="preemptible-gpu-pool",
            gpus=4,
            memory="48G",
            retries=5,
            volume=CLAIM,
        ),
    ]


if __name__ == "__main__":
    print(yaml.safe_dump_all(training(Profile.load()), sort_keys=False), end="")
