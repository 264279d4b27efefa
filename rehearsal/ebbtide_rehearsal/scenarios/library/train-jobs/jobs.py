"""Two TrainJobs that each take all of their queue."""  # noqa: INP001 - a program, not a module

import sys
from typing import Any

import yaml

from ebbtide.placement import Profile
from ebbtide.work.training import train_job


def trained(profile: Profile, name: str) -> dict[str, Any]:
    """Return a TrainJob of two pods, with PyTorch."""
    placed = train_job(profile, nodes=2, queue="cpu", cpu="3", memory="4Gi").manifest()
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, **placed["metadata"]},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, **placed["spec"]},
    }


if __name__ == "__main__":
    cluster = Profile.load()
    sys.stdout.write(yaml.safe_dump_all([trained(cluster, name) for name in ("first", "second")]))
