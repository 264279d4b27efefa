"""Advice for known causes of failed updates."""

import pytest

from ebbtide.operations.advice import advice


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            "googleapi: Error 403: Kubernetes Engine API has not been used in project 1 before.",
            "An API is not enabled.",
        ),
        ('Code="MissingSubscriptionRegistration"', "An API is not enabled."),
        (
            "The zone does not have enough resources available to fulfill the request.",
            "no such machines there",
        ),
        ('Code="ErrCode_InsufficientVCPUQuota" Insufficient vcpu quota requested 8', "quota dev"),
        ("Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1.", "quota dev"),
        ('googleapi: Error 403: Required "container.clusters.create" permission(s)', "permission is missing"),
        ('Code="AuthorizationFailed"', "permission is missing"),
        ("google: could not find default credentials.", "log in with `gcloud"),
        (
            'Apply failed with 1 conflict: conflict with "helm" using apps/v1: .spec',
            "Another program manages",
        ),
        (
            'Message="managed cluster is in Provisioning State(Succeeded) and Power State(Stopped)"',
            "wake dev",
        ),
        ("configured Kubernetes cluster is unreachable: unable to load schema", "wake dev"),
        ("googleapi: Error 409: Already exists: projects/p/.../nodePools/cpu.", "not in the stack"),
    ],
)
def test_a_known_cause_has_advice(error: str, text: str) -> None:
    """Once, however many resources it stops."""
    (line,) = advice("dev", [error, error])
    assert text.lower() in line.lower()


def test_another_cause_has_none() -> None:
    """The cloud's own message is enough."""
    assert list(advice("dev", ["something else"])) == []
