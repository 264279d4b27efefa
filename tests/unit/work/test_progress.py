"""A Job's state in words, from the answers of API servers."""

from typing import Any

import pytest

from ebbtide.text import command_line
from ebbtide.work.evidence import Evidence
from ebbtide.work.progress import Phase, end_document, end_message, progress, progress_line
from tests.unit.work.clusters import DEV, DEV_AKS
from tests.unit.work.recorded import (
    NO_NODE,
    condition,
    event,
    exited,
    job,
    look_at,
    pod,
    preempted,
    sweep,
    unscheduled,
)

_SUSPENDED = job(spec={"suspend": True})
_GROUP = "pod didn't trigger scale-up: 1 max node group size reached"


_WORDS: list[tuple[str, Evidence, str]] = [
    ("new", look_at(job()), "starting"),
    (
        "queued",
        look_at(_SUSPENDED),
        "queued: it is suspended and in no queue, so that no controller resumes it",
    ),
    (
        "scheduler",
        look_at(job(active=1), unscheduled("a")),
        f"waiting for a node: no node can take it: {NO_NODE.partition('. preemption')[0]}",
    ),
    (
        "scale-up",
        look_at(job(active=1), unscheduled("a"), events=[event("a", "TriggeredScaleUp")]),
        "waiting for a node: a node is being created for it since 10:00 UTC",
    ),
    ("image", look_at(job(active=1), pod("a", "Pending")), "starting"),
    ("running", look_at(job(active=1), pod("a", "Running")), "running"),
    (
        "again",
        look_at(job(active=1, failed=2), exited("a", 1), preempted("b"), exited("c", 1), pod("d", "Running")),
        "running; 1 disruption survived, 2 retries used",
    ),
    (
        "backoff",
        look_at(job(failed=1), exited("a", 1)),
        "starting: its pods have ended, and its controller waits before the next try; 1 retry used",
    ),
    (
        "succeeded",
        look_at(job(active=1), preempted("a"), pod("b", "Succeeded")),
        "running; 1 disruption survived",
    ),
    (
        "ending",
        look_at(job(active=1), pod("a", "Running", metadata={"deletionTimestamp": "2026-11-20T10:01:00Z"})),
        "starting",
    ),
    (
        "sweep",
        look_at(
            sweep(12, active=3, succeeded=5, failed=3, failedIndexes="0,3"),
            pod("a", "Running"),
            pod("b", "Running"),
            unscheduled("c"),
            events=[event("c", "NotTriggerScaleUp", _GROUP)],
        ),
        (
            "running 2, done 5 of 12, failed 2, waiting for a node 1 "
            "(all nodes are in use, and it has its maximum of nodes); 1 retry used"
        ),
    ),
    (
        "sweep-queued-again",
        look_at(sweep(4, succeeded=1) | {"spec": {"completions": 4, "suspend": True}}),
        "queued, done 1 of 4: it is suspended and in no queue, so that no controller resumes it",
    ),
]


@pytest.mark.parametrize(("look", "expected"), [it[1:] for it in _WORDS], ids=[it[0] for it in _WORDS])
def test_a_state_in_words(look: Evidence, expected: str) -> None:
    """The reason for waiting comes from the component that makes it wait."""
    assert progress_line(progress(look)) == expected


def test_disruptions_are_remembered() -> None:
    """A pod that has gone with its node still counts, and none counts twice."""
    first = progress(look_at(job(active=1), preempted("a"), pod("b", "Running")))
    second = progress(
        look_at(job(active=1), preempted("a"), preempted("b"), pod("c", "Running")), first.disrupted
    )
    third = progress(look_at(job(active=1), pod("c", "Running")), second.disrupted)
    assert [len(state.disrupted) for state in (first, second, third)] == [1, 2, 2]
    assert progress_line(third) == "running; 2 disruptions survived"


def _end(look: Evidence, *profile: Any) -> str:
    state = progress(look)
    assert state.over
    return end_message(look, state, *profile)


def test_a_job_that_completed() -> None:
    """A completed Job is reported with its duration, disruptions and retries."""
    done = job(conditions=(condition("SuccessCriteriaMet"), condition("Complete")), succeeded=1, failed=1)
    assert (
        _end(look_at(done, preempted("a"), exited("b", 1), pod("c", "Succeeded")))
        == "Job train completed after 2 min 5 s; 1 disruption survived, 1 retry used."
    )


def test_a_job_that_failed() -> None:
    """The exit code, and where the logs are; the last failure is not a retry; nothing is survived twice."""
    why = "Job has reached the specified backoff limit"
    failed = condition("Failed", reason="BackoffLimitExceeded", message=why)
    look = look_at(job(conditions=(failed,), failed=4), exited("a", 137, reason="OOMKilled"), preempted("b"))
    lines = _end(look, DEV).splitlines()
    assert lines[:2] == [
        f"Job train failed after 2 min 5 s: {why}. 1 disruption survived, 3 retries used.",
        (
            "  pod train-a: exit code 137 (OOMKilled): it was killed, as for more memory than it has; "
            "request more (--memory)"
        ),
    ]
    assert lines[2].startswith("Logs: https://console.cloud.google.com/logs/query;")
    assert progress(look).phase is Phase.FAILED


def test_the_end_as_a_document() -> None:
    """The document has the facts of the message: phase, counts, failures and logs."""
    done = job(conditions=(condition("Complete"),), succeeded=1, failed=1)
    look = look_at(done, preempted("a"), exited("b", 1), pod("c", "Succeeded"))
    assert end_document(look, "vision", progress(look), DEV) == {
        "version": "ebbtide.dev/job/v1",
        "kind": "Job",
        "namespace": "vision",
        "name": "train",
        "phase": "completed",
        "reason": "",
        "seconds": 125,
        "completions": 1,
        "points": 1,
        "failedPoints": 0,
        "retries": 1,
        "disruptions": 1,
        "failures": [],
        "logs": [],
    }
    look = look_at(job(conditions=(condition("Failed", message="It was."),), failed=1), exited("a", 2))
    failed = end_document(look, "vision", progress(look), DEV)
    assert (failed["phase"], failed["reason"]) == ("failed", "It was.")
    assert failed["failures"] == ["pod train-a: exit code 2"]
    assert failed["logs"][0].startswith("Logs: https://console.cloud.google.com/logs/query;")


def test_logs_without_a_link_or_a_profile() -> None:
    """On AKS the query stands alone; without a profile, the command does that has one."""
    look = look_at(job(conditions=(condition("Failed", message="It was."),), failed=1), exited("a", 2))
    assert "Logs, by this query:" in _end(look, DEV_AKS).splitlines()
    again = command_line("logs", "-n", "vision", "--job", "train")
    assert _end(look).splitlines() == [
        "Job train failed after 2 min 5 s: It was.",
        "  pod train-a: exit code 2",
        f"Logs: `{again}`, with the cluster's profile.",
    ]


def test_logs_that_cannot_be_asked_for() -> None:
    """The end of the Job is reported nonetheless."""
    failed = job(conditions=(condition("Failed", message="It was."),), failed=1)
    failed["metadata"]["name"] = "not.ours"
    assert _end(look_at(failed), DEV).splitlines() == [
        "Job not.ours failed after 2 min 5 s: It was.",
        "Logs: job is 'not.ours', which is not a valid Job name.",
    ]


def test_a_sweep_that_failed() -> None:
    """A failed sweep is reported with the index and parameters of its last attempt."""
    failed = sweep(
        14,
        conditions=(condition("Failed", message="Job has failed indexes"),),
        failed=25,
        failedIndexes="1-12",
    )
    env = [{"name": "EBBTIDE_SWEEP", "value": '[{"lr":0.1},{"lr":"$$(x)"}]'}]
    failed["spec"]["template"]["spec"]["containers"][0]["env"] = env
    later = exited("b", 42, index=1)
    later["metadata"]["creationTimestamp"] = "2026-11-20T10:01:00Z"
    evicted = pod("c", "Failed", index=2, reason="Evicted", message="The node was low on resource: memory.")
    lines = _end(look_at(failed, later, exited("a", 1, index=1), evicted), DEV).splitlines()
    assert lines[0] == "Job train failed after 2 min 5 s: Job has failed indexes. 13 retries used."
    assert lines[1:4] == [
        '  index 1 {"lr": "$(x)"}: exit code 42',
        "  index 2: Evicted: The node was low on resource: memory.",
        "  index 3: its pods no longer exist",
    ]
    assert lines[11] == "  and 2 more: 1-12"
