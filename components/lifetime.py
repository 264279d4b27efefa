"""Lifetime of an ephemeral cluster."""

import pulumi

from ebbtide.declaration.model import Cluster, expiry
from ebbtide.values import clock


class Lifetime(pulumi.ComponentResource):
    """The time of the first `pulumi up`, stored in the stack's state, and the expiry computed from it.

    A stash keeps its first value (pulumi 3.259, pkg/resource/deploy/builtins.go); the engine saves it before
    it creates anything with the label. A preview does not read the clock.
    """

    expires: pulumi.Output[str]
    """Time of expiry, as `2026-11-22T20:00Z`; in a preview before the first `up`, `8h-after-the-first-up`."""

    def __init__(self, name: str, hours: int, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(expiry.COMPONENT, name, {"hours": hours}, opts)
        first_up = pulumi.Stash(
            f"{name}-first-up",
            input=expiry.FIRST_UP if pulumi.runtime.is_dry_run() else expiry.text(clock.now()),
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["input"]),
        )
        self.expires = first_up.output.apply(lambda moment: expiry.expiry(moment, hours))
        self.register_outputs({expiry.OUTPUT: self.expires})


def expires(name: str, declaration: Cluster, topology: pulumi.Resource) -> pulumi.Output[str] | None:
    """Return a cluster's time of expiry; None for a permanent cluster."""
    if declaration.lifetime is None:
        return None
    inside = pulumi.ResourceOptions(parent=topology)
    return Lifetime(f"{name}-lifetime", declaration.lifetime.hours, inside).expires
