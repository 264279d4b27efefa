"""The lab's sweep: `python sweep.py | kubectl apply -f -`. The placement profile is read from
EBBTIDE_PROFILE."""

from typing import Any

import yaml

from ebbtide.placement import Profile
from ebbtide.work.sweeps import sweep

IMAGE = "experiment:1"
"""Image in the team's own registry."""
GRID = {"rate": [0.3, 0.1, 0.03, 0.01], "seed": [1, 2, 3, 4, 5]}


def grasping(profile: Profile) -> dict[str, Any]:
    """Return a Job with twenty experiments, in parallel up to the pool's GPUs, with results in the volume."""
    return sweep(
        profile,
        GRID,
        parallelism=profile.pool("gpu").max_nodes,
        max_failed=2,
        name="rates",
        image=profile.image("grasping", IMAGE),
        command=["python", "experiment.py", "/checkpoints/rates"],
        namespace="grasping",
        service_account="worker",  # may read and write the volume's bucket
        pool="gpu",
        gpus=1,
        cpu="4",
        memory="16Gi",
        volume="shared",
        secret_env={"WANDB_API_KEY": "tracker/api-key"},  # kubectl create secret generic tracker …
    )


if __name__ == "__main__":
    print(yaml.safe_dump(grasping(Profile.load()), sort_keys=False), end="")
