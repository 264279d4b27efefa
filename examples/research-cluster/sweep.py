"""The lab's sweep: `python sweep.py | kubectl apply -f -`. The placement profile is the one that
EBBTIDE_PROFILE names."""

from typing import Any

import yaml

from ebbtide.placement import Profile
from ebbtide.workloads.sweeps import sweep

IMAGE = "experiment:1"
"""In the team's own registry."""
GRID = {"rate": [0.3, 0.1, 0.03, 0.01], "seed": [1, 2, 3, 4, 5]}


def grasping(profile: Profile) -> dict[str, Any]:
    """Twenty experiments, as many at once as the pool has GPUs; their results are in the project's volume."""
    return sweep(
        profile,
        GRID,
        parallelism=profile.pool("gpu").max_nodes,
        max_failed=2,
        name="rates",
        image=profile.image("grasping", IMAGE),
        command=["python", "experiment.py", "/checkpoints/rates"],
        namespace="grasping",
        service_account="worker",  # may read and write the bucket that the volume is
        pool="gpu",
        gpus=1,
        cpu="4",
        memory="16Gi",
        volume="shared",
        secret_env={"WANDB_API_KEY": "tracker/api-key"},  # kubectl create secret generic tracker …
    )


if __name__ == "__main__":
    print(yaml.safe_dump(grasping(Profile.load()), sort_keys=False), end="")
