"""Control planes in name only, for tests of the fake clouds without an API server."""

from typing import Literal

from ebbtide_rehearsal.cloud.provider import Endpoint


class FakeControlPlanes:
    """Control planes that exist at once: see `Clusters`."""

    def __init__(self, endpoint: Endpoint | None = None) -> None:
        """Describe the control planes.

        Args:
            endpoint: that of every cluster. Default: for each a host that exists nowhere.
        """
        self._endpoint = endpoint
        self.running: dict[str, Endpoint] = {}

    def create(self, identity: str, cloud: Literal["gke", "aks"]) -> Endpoint:
        """Give a cluster its endpoint."""
        assert identity not in self.running
        nowhere = Endpoint(f"{cloud}-{len(self.running)}.test:443", "Q0E=")
        self.running[identity] = self._endpoint or nowhere
        return self.running[identity]

    def endpoint(self, identity: str) -> Endpoint:
        """Return that host; raises KeyError."""
        return self.running[identity]

    def delete(self, identity: str) -> None:
        """Take it away."""
        self.running.pop(identity, None)
