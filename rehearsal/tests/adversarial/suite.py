"""The adversarial suite: attempts to become more, or to reach what belongs to others, as data.

Each file in `attempts/` is a section of docs/attempts.md, and each of its rows an attempt:

    - who: member
      attempt: mount the node's root directory
      pod: {volumes: [{name: root, hostPath: {path: /}}]}
      refused: Pod Security

`who` is a name of `IDENTITIES`. What is sent is one of:

- `pod`, `job`: fields of the spec of a pod, or of a Job's pod, whose container has the fields of `container`,
  and which selects the nodes of a pool unless `nodeSelector` is given;
- `manifest`: an object, or a list of which the last is the attempt; an administrator creates the others;
- `request`: a method and a path, as `GET /api/v1/nodes`, with the body `manifest` if there is one.

Its outcome is one of:

- `refused`: by what, as `mechanism` reads it from the API server's answer;
- `refused-later`: by what the controller that acts on the admitted object is refused, in an event;
- `admitted`: why it is harmless.

Everything is sent as a dry run, except with `refused-later`. `namespace` is that of the identity unless it is
given. Each attempt is made on both clouds, unless it names one as `cloud`. To add an attempt, add a row, run
`make docs`, and run the test: it says which mechanism refused it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import yaml

from ebbtide.declaration.catalog.clouds import POOL_LABEL
from ebbtide.values.paths import Object

NODE: Final = "worker"
MEMBER: Final = "ada@acme.example"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user of the API server.

    Attributes:
        title: description for the page.
        user: the user name.
        groups: the groups, as the API server's authenticators set them.
        namespace: the namespace that it works in.
    """

    title: str
    user: str
    groups: tuple[str, ...]
    namespace: str

    @classmethod
    def account(cls, title: str, namespace: str, name: str) -> Self:
        """Return the identity of a service account's pods."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", _EVERYONE)
        return cls(title, f"system:serviceaccount:{namespace}:{name}", groups, namespace)


_EVERYONE: Final = "system:authenticated"

IDENTITIES: Final = {
    "member": Identity("a member", MEMBER, (_EVERYONE,), "vision"),
    "step": Identity.account("a pipeline's step", "kubeflow", "pipeline-runner"),
    "cache": Identity.account(
        "the disabled cache's account", "kubeflow", "kubeflow-pipelines-cache-deployer-sa"
    ),
    "workflow": Identity.account("a Workflow's resource", "kubeflow", "argo"),
    "katib": Identity.account("Katib's controller", "katib", "katib-controller"),
    "trial": Identity.account("a trial", "vision", "default"),
    "node": Identity("a node", f"system:node:{NODE}", ("system:nodes", _EVERYONE), "vision"),
}
"""Identities that attempts name: a member of the team `vision`; the account of Kubeflow Pipelines' steps, and
two accounts as which a step can create pods; the account of a trial's pods, and of the team's other pods that
name none; a node without pods."""

_MECHANISMS: Final = (
    (r'violates PodSecurity "', "Pod Security"),
    (r"ValidatingAdmissionPolicy '([^']+)'", "the policy `{}`"),
    (r'admission webhook "([^"]+)"', "the webhook `{}`"),
    (r"exceeded quota: ([^,]+)", "the quota `{}`"),
    (r"(?:maximum|minimum) \S+ usage per", "the limit range"),
    (r'User "system:node:[^"]+" cannot', "the node authorizer"),
    (r'node "[^"]+" (?:is not allowed|can only|cannot)', "NodeRestriction"),
    (r'User "[^"]+" cannot|attempting to grant RBAC permissions', "RBAC"),
)


def mechanism(message: str) -> str:
    """Return what refused a request, by the API server's message; the message itself if it is unknown."""
    for pattern, title in _MECHANISMS:
        if match := re.search(pattern, message):
            return title.format(*match.groups())
    return message


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A row.

    Attributes:
        section: title of its section.
        who: the identity.
        attempt: description of the attempt, an imperative.
        namespace: the namespace of the objects.
        cloud: the cloud that it is made on; empty for both.
        before: objects that exist before.
        request: method and path; empty to create `body`.
        body: the object that is sent; None for a request without one.
        refused: by what it is refused; empty if it is admitted.
        later: True if the controller that acts on it is refused, not the object.
        admitted: why it is harmless; empty if it is refused.
    """

    section: str
    who: str
    attempt: str
    namespace: str
    cloud: str = ""
    before: tuple[Object, ...] = ()
    request: str = ""
    body: Object | None = None
    refused: str = ""
    later: bool = False
    admitted: str = ""

    @classmethod
    def of(cls, section: str, row: Mapping[str, Any]) -> Self:
        """Read a row.

        Raises:
            ValueError: it has an unknown field, no outcome, or nothing to send.
        """
        if unknown := row.keys() - _FIELDS:
            raise ValueError(f"{section}: {row.get('attempt')}: unknown fields {sorted(unknown)}")
        if len(row.keys() & _OUTCOMES) != 1 or len(row.keys() & {"pod", "job", "manifest", "request"}) == 0:
            raise ValueError(f"{section}: {row.get('attempt')}: needs one outcome, and something to send")
        objects = _objects(row)
        return cls(
            section=section,
            who=row["who"],
            attempt=row["attempt"],
            namespace=row.get("namespace", IDENTITIES[row["who"]].namespace),
            cloud=row.get("cloud", ""),
            before=tuple(objects[:-1]),
            request=row.get("request", ""),
            body=objects[-1] if objects else None,
            refused=row.get("refused", row.get("refused-later", "")),
            later="refused-later" in row,
            admitted=row.get("admitted", ""),
        )

    @property
    def identity(self) -> Identity:
        """The identity."""
        return IDENTITIES[self.who]

    @property
    def outcome(self) -> str:
        """Return the attempt's outcome for the page."""
        if self.admitted:
            return f"admitted: {self.admitted}"
        return (
            f"admitted; its controller is refused by {self.refused}"
            if self.later
            else f"refused: {self.refused.removeprefix('the ')}"
        )


_OUTCOMES: Final = {"refused", "refused-later", "admitted"}
_FIELDS: Final = {
    *("who", "attempt", "namespace", "cloud", "pod", "job", "container", "manifest", "request"),
    *_OUTCOMES,
}


def _objects(row: Mapping[str, Any]) -> list[Object]:
    """Return the objects of a row, the last of which is the attempt."""
    spec: Object = row.get("pod") or row.get("job") or {}
    container = {"name": "main", "image": "busybox", **row.get("container", {})}
    metadata = {"name": re.sub("[^a-z]+", "-", row["attempt"].lower())[:50].strip("-")}
    pod: Object = {"containers": [container], "nodeSelector": {POOL_LABEL: "cpu"}, **spec}
    if "pod" in row:
        return [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}]
    if "job" in row:
        template = {"spec": {"restartPolicy": "Never", **pod}}
        return [
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
        ]
    given: list[Object] | Object = row.get("manifest", [])
    return given if isinstance(given, list) else [given]


def attempts() -> list[Attempt]:
    """Return every attempt, in the order of the page."""
    files = sorted((Path(__file__).parent / "attempts").glob("*.yaml"))
    sections = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    return [Attempt.of(section["title"], row) for section in sections for row in section["attempts"]]
