"""Cases on which Kueue in virtual time is compared with the real controller."""

from kueue_grid import Case, jobs
from kueue_jobs import RECLAIM, Object, provisioning, queue

FLAVORS = ("spot", "on-demand")


def _cohort(prefix: str, names: str, **spec: object) -> list[Object]:
    return [item for name in names for item in queue(f"{prefix}{name}", {"spot": 3}, f"{prefix}all", **spec)]


CLASSICAL = {
    "plain queues": Case(
        lambda prefix: [*queue(f"{prefix}a", {"spot": 4}), *queue(f"{prefix}b", {"spot": 2})],
        jobs(50, 1, "aab", slots=(4, 12)),
    ),
    "borrowing": Case(lambda prefix: _cohort(prefix, "ab"), jobs(50, 2, "aab", slots=(4, 12))),
    "preemption in a queue": Case(
        lambda prefix: queue(f"{prefix}a", {"spot": 4}, preemption=RECLAIM),
        jobs(50, 3, "a", priorities=(0, 0, 100), sizes=(1,), slots=(4, 12)),
    ),
    "preemption by reclaim": Case(
        lambda prefix: _cohort(prefix, "ab", preemption=RECLAIM),
        jobs(50, 4, "aab", sizes=(1,), slots=(6, 16)),
    ),
    "ProvisioningRequests with retries": Case(
        lambda prefix: [
            *provisioning(f"{prefix}queued", 2),
            *queue(
                f"{prefix}a",
                {"spot": 6},
                admissionChecksStrategy={"admissionChecks": [{"name": f"{prefix}queued"}]},
            ),
        ],
        jobs(50, 5, "a", slots=(2, 6)),
        provisioned=lambda job, attempt: attempt > (0, 0, 1, 0, 2, 0, 0, 9)[job % 8],
    ),
    "several flavors": Case(
        lambda prefix: [
            item
            for name in "ab"
            for item in queue(f"{prefix}{name}", {"spot": 2, "on-demand": 2}, f"{prefix}all")
        ],
        jobs(50, 6, "ab", slots=(6, 14)),
    ),
}
"""Without fair sharing."""

FAIR = {
    "fair sharing": Case(
        lambda prefix: [
            *queue(f"{prefix}owner", {"spot": 4}, f"{prefix}all"),
            *(
                item
                for name in "abc"
                for item in queue(f"{prefix}{name}", {"spot": 1}, f"{prefix}all", preemption=RECLAIM)
            ),
        ],
        jobs(60, 8, "aaabbc", slots=(6, 16), sizes=(1,)),
    ),
    "WaitForPodsReady with backoff": Case(
        lambda prefix: queue(f"{prefix}a", {"spot": 5}),
        jobs(50, 9, "a"),
        ready=lambda job, attempt: (0, 0, 1, 0, None if attempt < 2 else 0, 0, 2, 0, 0, None)[job % 10],
    ),
}
"""With fair sharing and waitForPodsReady."""

CLASSICAL_CONFIGURATION = {"fairSharing": None, "waitForPodsReady": None}

FAIR_CONFIGURATION = {
    "waitForPodsReady": {
        "timeout": "13s",
        "requeuingStrategy": {"backoffBaseSeconds": 4, "backoffLimitCount": 2, "timestamp": "Eviction"},
    },
}
