"""Rehearsal of a stack on this machine: the real Pulumi engine and a real Kubernetes control plane, with a
fake cloud.

Real: the engine, the API server with its controllers and scheduler, Kueue, Helm. Fake: the clouds' APIs,
their node pools with autoscaler and capacity queue, kubelets. A fake rejects the requests that the real API
rejects, with an equivalent message.
"""

from ebbtide.errors import EbbtideError

__version__ = "0.1.0"


class RehearsalError(EbbtideError):
    """The rehearsal could not run; the message has the reason and the fix."""
