"""Control planes in name only, for tests of the fake clouds without an API server."""

from typing import Literal

from ebbtide_rehearsal.cloud.provider import Endpoint


class FakeControlPlanes:
    """Control planes that exist at once, and nowhere: see `Clusters`."""

    def __init__(self) -> None:
        self.running: dict[str, Endpoint] = {}

    def create(self, identity: str, cloud: Literal["gke", "aks"]) -> Endpoint:
        """Give a cluster a host that no other has."""
        assert identity not in self.running
        self.running[identity] = Endpoint(f"{cloud}-{len(self.running)}.test:443", "Q0E=")
        return self.running[identity]

    def endpoint(self, identity: str) -> Endpoint:
        """Return that host; raises KeyError."""
        return self.running[identity]

    def delete(self, identity: str) -> None:
        """Take it away."""
        self.running.pop(identity, None)
