"""Small programs that the tests of the preview record."""

import pulumi
import pulumi_gcp as gcp

from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording


class Part(pulumi.ComponentResource):
    """A component, of any type token."""

    def __init__(
        self, name: str, opts: pulumi.ResourceOptions | None = None, *, type_: str = "test:parts:Part"
    ) -> None:
        super().__init__(type_, name, {}, opts)


def network(name: str, opts: pulumi.ResourceOptions | None = None) -> gcp.compute.Network:
    """The cheapest resource to record."""
    return gcp.compute.Network(name, name=name, auto_create_subnetworks=False, opts=opts)


def run(program: object, *secret_keys: str, **config: str) -> Recording:
    """Record a program of project `shop`, stack `dev`; keyword `a__b` is the key `a:b`."""
    assert callable(program)
    own = {key.replace("__", ":"): value for key, value in config.items()}
    return record(program, project="shop", stack="dev", config=own, secret_keys=secret_keys)
