"""A fake API server that keeps objects, for tests of what is created, changed and deleted."""

from collections.abc import Callable, Mapping
from typing import Any

from ebbtide.clients.kubernetes import JSON, MERGE_PATCH, Api, ApiError, Object


class ObjectsApi(Api):
    """An API server with the objects that were created, in namespace `lab`.

    Attributes:
        objects: the objects, by path.
        writes: method and path of each request that changes something, in order.
        on_write: called with method and path before each such request; an error of it is the answer.
        clock: creation time of the next object.
    """

    def __init__(self) -> None:
        super().__init__(None, "lab")
        self.objects: dict[str, Object] = {}
        self.writes: list[tuple[str, str]] = []
        self.on_write: Callable[[str, str], object] = lambda _method, _path: None
        self.clock = "2026-11-20T10:00:00Z"
        self._uids = 0

    def names(self, kind: str) -> list[str]:
        """Return the names of the objects of a kind, such as `jobs`."""
        return [path.rpartition("/")[2] for path in self.objects if f"/{kind}/" in path]

    def get(self, path: str, *, accept: str = JSON, **query: str) -> Object:  # noqa: ARG002 - as its base
        """Return an object, or the objects of a path with the label of `labelSelector`."""
        if path in self.objects:
            return self.objects[path]
        if (
            "/"
            in path.removeprefix("/apis/batch/v1/")
            .removeprefix("/api/v1/")
            .partition("/")[2]
            .partition("/")[2]
        ):
            raise ApiError(404, f"{path} not found", reason="NotFound")
        key, _, value = query.get("labelSelector", "").partition("=")
        items = [item for name, item in self.objects.items() if name.startswith(f"{path}/")]
        return {"items": [item for item in items if not key or _matches(item, key, value)]}

    def create(self, path: str, body: Mapping[str, Any], **query: str) -> Object:
        """Create an object."""
        if path.endswith("selfsubjectreviews"):
            return {"status": {"userInfo": {"username": "ada"}}}
        key = f"{path}/{body['metadata']['name']}"
        if "dryRun" not in query:
            self._writes("POST", path)
        if key in self.objects:
            raise ApiError(409, f"{key} already exists", reason="AlreadyExists")
        self._uids += 1
        metadata = {**body["metadata"], "uid": f"u{self._uids}", "creationTimestamp": self.clock}
        created = {**body, "metadata": metadata}
        if "dryRun" not in query:
            self.objects[key] = created
        return created

    def patch(self, path: str, body: Any, kind: str = MERGE_PATCH, **query: str) -> Object:  # noqa: ARG002
        """Merge metadata."""
        self._writes("PATCH", path)
        item = self.get(path)
        change = dict(body["metadata"])
        if change.pop("uid", item["metadata"]["uid"]) != item["metadata"]["uid"]:
            raise ApiError(409, "the UID in the precondition is another", reason="Conflict")
        labels = {**item["metadata"].get("labels", {}), **change.pop("labels", {})}
        labels = {key: value for key, value in labels.items() if value is not None}
        self.objects[path] = {**item, "metadata": {**item["metadata"], **change, "labels": labels}}
        return self.objects[path]

    def delete(self, path: str, *, uid: str = "", **options: Any) -> None:  # noqa: ARG002 - as its base
        """Delete an object of that UID, and what it owns."""
        self._writes("DELETE", path)
        item = self.objects.get(path)
        if item is None or (uid and item["metadata"]["uid"] != uid):
            return
        owned = [
            key
            for key, other in self.objects.items()
            for owner in other["metadata"].get("ownerReferences") or ()
            if owner["uid"] == item["metadata"]["uid"]
        ]
        for key in (path, *owned):
            del self.objects[key]

    def _writes(self, method: str, path: str) -> None:
        self.writes.append((method, path))
        self.on_write(method, path)


def _matches(item: Object, key: str, value: str) -> bool:
    labels: Object = item["metadata"].get("labels") or {}
    return labels.get(key) == value if value else key in labels
