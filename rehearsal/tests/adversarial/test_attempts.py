"""Attempts to become more, against the real API server with the objects of a stack with every add-on and its
controllers."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from components.addons.add_on import system_placement
from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.declaration.model.declare import declare
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane, ControlPlaneSettings
from ebbtide_rehearsal.control_plane.plan import CloudName
from ebbtide_rehearsal.tools.find import Tools
from rehearsal.tests.adversarial import stack
from rehearsal.tests.adversarial.suite import IDENTITIES, NODE, Attempt, Identity, attempts, mechanism
from rehearsal.tests.control_plane.cluster import Object, node, wait
from rehearsal.tests.control_plane.commands import Kubectl
from tests.declarations import Declaration

pytestmark = [pytest.mark.rehearsal, pytest.mark.released(*stack.MANIFESTS)]

_FIRST = ("Namespace", "CustomResourceDefinition")
_PORTS: dict[CloudName, frozenset[int] | None] = {"gke": frozenset({443, 10250}), "aks": None}
"""Ports of nodes that a private GKE cluster's control plane reaches."""

Answer = Callable[[Attempt], str]
"""Make an attempt; return the API server's refusal, or an empty string."""


@pytest.fixture(scope="module")
def cluster(
    tools: Tools,
    cloud: CloudName,
    declaration: Declaration,
    parts: list[stack.Part],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """A cluster with all objects of the stack, a node for its system pods and one for work."""
    directory = tmp_path_factory.mktemp("adversarial")
    users = {identity.user: identity.groups for identity in IDENTITIES.values()}
    settings = ControlPlaneSettings(name="attacked", cloud=cloud, members=users, open_ports=_PORTS[cloud])
    with ControlPlane.start(directory, tools, settings) as started:
        labels = {"kubernetes.io/os": "linux", **system_placement(declare(declaration)).node_selector}
        node(started.api, "system", labels=labels, resources={"cpu": "64", "memory": "256Gi"})
        node(started.api, NODE, taints=[{"key": "ebbtide.dev/pool", "value": "cpu", "effect": "NoSchedule"}])
        kubectl = Kubectl(tools, started)
        pending: list[Object] = []
        for part in parts:
            pending += part.objects
            if len(part.objects) > 1 or part is parts[-1]:
                _install(pending, kubectl, started.api)
                pending = []
        yield started


def _install(objects: Sequence[Object], kubectl: Kubectl, api: Api) -> None:
    """Create objects, and wait until their controllers are ready, as the engine does."""
    for group in (
        [item for item in objects if item["kind"] in _FIRST],
        [item for item in objects if item["kind"] not in _FIRST],
    ):
        wait(lambda group=group: _applied(group, kubectl), lambda error: not error)
    for item in objects:
        if item["kind"] == "Deployment" and "spec" in item:
            about = item["metadata"]
            path = f"/apis/apps/v1/namespaces/{about['namespace']}/deployments/{about['name']}"
            wait(lambda path=path: api.get(path), _ready)


def _applied(objects: Sequence[Object], kubectl: Kubectl) -> str:
    """Apply objects; return why they are not accepted yet."""
    try:
        if objects:
            kubectl.apply(objects)
    except AssertionError as error:
        return str(error)
    return ""


def _ready(deployment: Object) -> bool:
    return deployment["status"].get("readyReplicas", 0) >= deployment["spec"]["replicas"]


@pytest.fixture(scope="module")
def answer(cluster: ControlPlane) -> Answer:
    """Make attempts on the cluster."""
    kinds = _Kinds(cluster.api)
    clients = {name: _client(cluster, identity) for name, identity in IDENTITIES.items()}

    def answer(attempt: Attempt) -> str:
        for item in attempt.before:
            cluster.api.create(kinds.path(item, attempt.namespace), item)
        path = "" if attempt.request else kinds.path(attempt.body or {}, attempt.namespace)
        method, path = (attempt.request or f"POST {path}").split()

        def sent() -> str:
            try:
                _send(clients[attempt.who], method, path, attempt)
            except ApiError as error:
                return "" if error.not_found and attempt.request else error.message
            return ""

        # The API server's admission learns of a new PriorityClass or policy a moment after its creation.
        policed = attempt.refused.startswith("the policy") and not attempt.later
        return wait(
            sent, lambda message: "no PriorityClass with name" not in message and bool(message or not policed)
        )

    return answer


def _client(cluster: ControlPlane, identity: Identity) -> Api:
    plan = cluster.plan
    token = plan.identities.members[identity.user].token
    return Api.of_token(plan.server, str(plan.certificates.authority), token)


def _send(api: Api, method: str, path: str, attempt: Attempt) -> None:
    # The API server refuses a dry run of a connection; there is no such pod.
    dry = {} if attempt.later or path.endswith("/exec") else {"dryRun": "All"}
    body = attempt.body or {}
    match method:
        case "GET":
            api.get(path)
        case "POST":
            api.create(path, body, **dry)
        case "PUT":
            api.put(path, body, **dry)
        case "PATCH":
            api.patch(path, body, **dry)
        case _:
            api.delete(path, dryRun=["All"], **body)


class _Kinds:
    """Paths of kinds, as the API server publishes them."""

    def __init__(self, api: Api) -> None:
        self._api, self._groups = api, dict[str, dict[str, Object]]()

    def path(self, item: Object, namespace: str) -> str:
        """Return the path of the collection of an object."""
        version = item["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if root not in self._groups:
            resources = self._api.get(root)["resources"]
            self._groups[root] = {each["kind"]: each for each in resources if "/" not in each["name"]}
        resource = self._groups[root][item["kind"]]
        place = (
            f"/namespaces/{item['metadata'].get('namespace', namespace)}" if resource["namespaced"] else ""
        )
        return f"{root}{place}/{resource['name']}"


@pytest.mark.parametrize("attempt", attempts(), ids=lambda attempt: f"{attempt.who}: {attempt.attempt}")
def test_the_outcome_is_as_documented(
    cluster: ControlPlane, answer: Answer, attempt: Attempt, cloud: CloudName
) -> None:
    """Each attempt is refused by what the table names, or admitted."""
    if attempt.cloud not in ("", cloud):
        return
    message = answer(attempt)
    if attempt.later:
        assert not message
        refusals = wait(lambda: _refusals(cluster.api, attempt), bool)
        message = refusals[0]
    assert (mechanism(message) if message else "") == attempt.refused, message


def test_no_policy_has_errors_of_type(cluster: ControlPlane) -> None:
    """The API server's own check of the policies' expressions finds nothing."""
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    checked = wait(
        lambda: [item.get("status", {}).get("typeChecking") for item in cluster.api.items(policies)],
        lambda results: None not in results,
    )
    assert [result for result in checked if result] == []


def _refusals(api: Api, attempt: Attempt) -> list[str]:
    """Return what the controller of an attempt's object has been refused, by its events."""
    body = attempt.body or {}
    events = api.items(f"/api/v1/namespaces/{attempt.namespace}/events")
    return [
        item["message"]
        for item in events
        if item["involvedObject"]["name"].startswith(body["metadata"]["name"])
        and mechanism(item["message"]) == attempt.refused
    ]
