"""The sample Jobs, one for each GPU type: `python jobs.py | kubectl apply -f -`. The placement profile is
read from EBBTIDE_PROFILE."""

from typing import Any

import yaml

from ebbtide.placement import PoolProfile, Profile
from ebbtide.work.jobs import job

POOLS = ("dws-t4-nodepool", "dws-a100-nodepool", "dws-h100-nodepool")


def sample(profile: Profile, pool: PoolProfile) -> dict[str, Any]:
    """Return a Job that waits in the queue for a GPU of one type, and sleeps for two minutes.

    The queue covers all pools. A node selector on the pods restricts the job to some of them: Kueue compares
    it with the labels of each pool's flavor. Kueue also adds the tolerations.
    """
    sample_job = job(
        profile,
        name=f"sample-{pool.name.split('-')[1]}",
        image="gcr.io/k8s-staging-perf-tests/sleep:v0.0.3",
        args=["120s"],
        queue="dws",
        gpus=1,
        cpu="100m",
        memory="100Mi",
        ttl="1h",
    )
    (kind,) = [label.key for label in pool.affinity if label.key.endswith("accelerator")]
    sample_job["spec"]["template"]["spec"]["nodeSelector"] = {kind: pool.labels[kind]}
    return sample_job


if __name__ == "__main__":
    cluster = Profile.load()
    jobs = [sample(cluster, cluster.pool(name)) for name in POOLS]
    print(yaml.safe_dump_all(jobs, sort_keys=False), end="")
