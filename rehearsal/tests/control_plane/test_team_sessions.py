"""`ebbtide shell` and `notebook` of a team's member through a queue, on both clouds, with the real Kueue."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components.addons.teams import profile_map
from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import condition
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools, kubeconfig
from rehearsal.tests.control_plane.cluster import Object, gone, wait
from rehearsal.tests.control_plane.commands import Ebbtide, Kubectl
from rehearsal.tests.control_plane.kueue import create_queues, install, settings_of
from rehearsal.tests.control_plane.node_pools import declared_pool, running
from rehearsal.tests.control_plane.process_pods import Terminal
from tests.declarations import BASES, changed

pytestmark = pytest.mark.rehearsal

_TEAM, _QUEUE = "vision", "cpus"
_ADA, _BOB = "ada@acme.example", "bob@acme.example"
_MEMBERS = {"gke": [_ADA, _BOB], "aks": ["11111111-1111-1111-1111-111111111111"]}
"""The declared members: users, and on Azure the object id of a group that they are in."""
_JOBS = f"/apis/batch/v1/namespaces/{_TEAM}/jobs"
_WORKLOADS = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{_TEAM}/workloads"
Start = Callable[..., Terminal]


def _declaration(cloud: str) -> Cluster:
    queues = [{"name": _QUEUE, "pools": ["cpu"]}]
    teams = [
        {
            "name": _TEAM,
            "members": _MEMBERS[cloud],
            "namespace": {"name": _TEAM, "podSecurity": "restricted"},
        }
    ]
    return declare(changed(BASES[cloud], queues=queues, teams=teams))


@pytest.fixture(scope="module", params=["gke", pytest.param("aks", marks=pytest.mark.long)])
def cluster(
    request: pytest.FixtureRequest,
    tools: ControlPlaneTools,
    chart_tools: ControlPlaneTools,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """A control plane with nodes, Kueue, its queue, and the team's namespace with its profile and roles."""
    declaration = _declaration(request.param)
    members: dict[str, list[str]] = dict.fromkeys((_ADA, _BOB), _MEMBERS[request.param])
    directory = tmp_path_factory.mktemp("team")
    pools = [declared_pool(declaration, name, minimum=int(name == "system")) for name in ("system", "cpu")]
    with (
        ControlPlane.start(directory / "plane", tools, settings_of(declaration, members)) as plane,
        running(plane, directory, *pools),
    ):
        kubectl = Kubectl(tools, plane)
        install(plane, kubectl, chart_tools, declaration, directory)
        create_queues(kubectl, declaration)
        (team,) = declaration.teams
        kubectl.apply([profile_map(profile(declaration), team, created=True)])
        yield plane


@pytest.fixture
def access(cluster: ControlPlane, tmp_path: Path) -> dict[str, Path]:
    """The members' kubeconfigs, which name the team's namespace."""
    plan = cluster.plan
    authority = plan.certificates.authority_data()
    files: dict[str, Path] = {}
    for member, identity in plan.identities.members.items():
        files[member] = tmp_path / f"{member}.kubeconfig"
        content = kubeconfig(
            server=plan.server, authority=authority, user={"token": identity.token}, namespace=_TEAM
        )
        files[member].write_text(json.dumps(content))
    return files


@pytest.fixture
def start(access: dict[str, Path], tools: ControlPlaneTools, folder: Path) -> Start:
    """Start a command of a member in a terminal, with the code of a folder and the namespace's profile."""

    def terminal(verb: str, name: str, *words: str, user: str = _ADA) -> Terminal:
        options = ("--queue", _QUEUE, "--code", str(folder), "--image", "python", "--run-as-user", "1000")
        return Terminal(tools.path("kubectl"), access[user], None, verb, name, *options, *words)

    return terminal


def _workload(api: Api) -> Object:
    (item,) = wait(lambda: api.items(_WORKLOADS), lambda items: len(items) == 1)
    return item


def test_a_terminal(cluster: ControlPlane, access: dict[str, Path], start: Start) -> None:
    """Kueue holds the Job until the queue is released, and `follow` says so; the member's terminal has the
    code, and its end deletes the Job."""
    api = cluster.api
    local_queue = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{_TEAM}/localqueues/{_QUEUE}"
    api.patch(local_queue, {"spec": {"stopPolicy": "Hold"}})
    terminal = start("shell", "dev")
    terminal.read("is created, in namespace vision")
    assert _workload(api)["spec"]["queueName"] == _QUEUE
    followed = Ebbtide(access[_ADA], profile(_declaration(cluster.plan.cloud))).start("follow", "dev")
    assert followed.stdout is not None
    line = followed.stdout.readline()
    assert line.startswith("queued: queue cpus is held and admits nothing; an administrator can release it")
    followed.kill()
    followed.communicate()
    job = api.get(f"{_JOBS}/dev")
    assert job["metadata"]["annotations"]["ebbtide.dev/user"] == _ADA
    api.patch(local_queue, {"spec": {"stopPolicy": "None"}})
    terminal.write("python train.py; basename $PWD; exit\n")
    output = terminal.read("dev has ended, and its Job is deleted.", seconds=600)
    assert terminal.end() == 0
    assert {"trained", "code"} <= {line.strip() for line in output.splitlines()}
    gone(api, f"{_JOBS}/dev")


def test_a_colleague_in_a_session(cluster: ControlPlane, start: Start) -> None:
    """A member who enters another one's session is told whose it is, and deletes it neither by leaving it nor
    after its end; its creator does, but not while the colleague's terminal is open."""
    api = cluster.api
    ada = start("shell", "shared", "--idle", "40s")
    # Her process keeps the session, however slow this machine is.
    ada.write("(until test -e $TMPDIR/left; do sleep 1; done) & echo here-$((1 + 1))\n")
    ada.read("here-2", seconds=600)
    for number in (signal.SIGHUP, None):
        bob = start("shell", "shared", user=_BOB)
        bob.write("echo there-$((1 + 1))\n")
        output = bob.read("there-2")
        assert f"shared is a session of {_ADA}, and keeps its own pool, image and code" in output
        if number:
            bob.process.send_signal(number)
            assert bob.end() == 128 + number
    ada.write("exit\n")
    ada.read("1 other terminal is open in it, and its Job stays.")
    assert ada.end() == 0
    bob.write("touch $TMPDIR/left; echo still-$((1 + 1)); exit\n")
    bob.read("still-2")
    bob.read(
        f"It is a session of {_ADA}, and its Job stays. It ends once no process of yours has run for 40 s"
    )
    assert bob.end() == 0
    wait(lambda: api.get(f"{_JOBS}/shared"), lambda job: bool(condition(job, "Complete")))
    late = start("shell", "shared", user=_BOB)
    late.read(f"It is a session of {_ADA}, and its Job stays: write another name for one of your own.")
    assert late.end() == 1
    own = start("shell", "shared")
    own.read("Its Job is deleted; the same command starts a new one.")
    assert own.end() == 1
    gone(api, f"{_JOBS}/shared")
