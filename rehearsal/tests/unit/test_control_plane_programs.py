"""Programs that run outside of the cluster: the labels of their pods, and their configuration."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from components.addons.katib import CONFIG
from components.addons.patches import CONTROL_PLANE_PORT, Object, containers
from ebbtide_rehearsal.addons import rehearsed
from ebbtide_rehearsal.addons.katib import KATIB
from ebbtide_rehearsal.addons.trainer import JOBSET, TRAINER
from ebbtide_rehearsal.control_plane.processes import ControlPlaneError
from ebbtide_rehearsal.control_plane.program import Assignment, Program
from ebbtide_rehearsal.control_plane.program_pods import available_programs, environment
from ebbtide_rehearsal.control_plane.volumes import NotMountedError
from ebbtide_rehearsal.tools.table import all_items
from tests.manifests import KATIB as KATIBS_OBJECTS
from tests.manifests import upstream

ASSIGNMENT = Assignment((1, 2, 3), Path("/pod"), "kubeflow-system")


class _Some:
    """Tools, of which only one is installed."""

    def path(self, name: str) -> Path:
        """Return its path."""
        return {"jobset": Path("/bin/jobset")}[name]


def test_every_program_is_a_tool() -> None:
    """Each has its name, and labels that no other has."""
    programs = [program for add_on in rehearsed().values() for program in add_on.programs]
    assert {program.tool for program in programs} <= set(all_items())
    assert len({program.selector for program in programs}) == len(programs)


def test_only_programs_that_are_there_are_run() -> None:
    """The tools decide."""
    assert [(item.program, item.binary) for item in available_programs(_Some())] == [
        (JOBSET, Path("/bin/jobset"))
    ]


@pytest.mark.parametrize("program", [TRAINER, JOBSET])
@pytest.mark.parametrize(
    ("configuration", "inside"),
    [
        ({}, {9443: 1, 8443: 2, 8081: 3}),
        (
            {
                "webhook": {"port": 10250, "host": ""},
                "metrics": {"bindAddress": ":8444"},
                "health": {"healthProbeBindAddress": "0.0.0.0:8082"},
            },
            {10250: 1, 8444: 2, 8082: 3},
        ),
    ],
    ids=["defaults", "told"],
)
def test_a_controller_manager_listens_on_this_machine(
    program: Program, configuration: dict[str, Any], inside: dict[int, int]
) -> None:
    """Configured addresses are replaced, and the ports in the cluster are the configured ones."""
    adapted, listening = program.out_of_cluster(configuration, ASSIGNMENT)
    assert adapted["webhook"] == {"host": "127.0.0.1", "port": 1}
    assert adapted["metrics"]["bindAddress"] == "127.0.0.1:2"
    assert adapted["health"]["healthProbeBindAddress"] == "127.0.0.1:3"
    assert listening.ports == inside
    assert listening.health == 3


@pytest.mark.parametrize(
    ("written", "namespace"),
    [({"leaderElect": True, "resourceNamespace": ""}, "kubeflow-system"), ({"resourceNamespace": "n"}, "n")],
)
def test_its_lease_is_where_it_is(written: dict[str, Any], namespace: str) -> None:
    """Unless configured otherwise; the rest is unchanged, and so is the input."""
    given = {"leaderElection": written, "certManagement": {"enable": True}}
    adapted, _ = TRAINER.out_of_cluster(given, ASSIGNMENT)
    assert adapted["leaderElection"] == written | {"resourceNamespace": namespace}
    assert adapted["certManagement"] == {"enable": True}
    assert set(given) == {"leaderElection", "certManagement"}


@pytest.fixture
def katib() -> dict[str, Object]:
    """Katib's objects as they are released."""
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in upstream(KATIBS_OBJECTS)}


@pytest.mark.usefixtures("minimal_and_released")
def test_katibs_settings_are_its_own_but_for_where_it_listens(katib: dict[str, Object]) -> None:
    """Katib runs with the settings of its release, except for its listening addresses."""
    configuration = yaml.safe_load(katib[f"ConfigMap/{CONFIG}"]["data"]["katib-config.yaml"])
    adapted, listening = KATIB.out_of_cluster(configuration, ASSIGNMENT)
    assert listening.ports == {8443: 1, 8080: 2, 18080: 3}
    assert listening.health == 3
    controller = adapted["init"].pop("controller")
    assert controller.pop("webhookPort") == 1
    assert controller.pop("metricsAddr") == "127.0.0.1:2"
    assert controller.pop("healthzAddr") == "127.0.0.1:3"
    configuration["init"]["controller"].pop("webhookPort")
    assert controller == configuration["init"].pop("controller")
    assert adapted == configuration


@pytest.mark.usefixtures("minimal_and_released")
def test_katib_is_where_it_is_told_to_be(katib: dict[str, Object]) -> None:
    """On another port, which is the one that the control plane reaches."""
    _, listening = KATIB.out_of_cluster(
        {"init": {"controller": {"webhookPort": CONTROL_PLANE_PORT}}}, ASSIGNMENT
    )
    assert listening.ports[CONTROL_PLANE_PORT] == 1
    labels = katib["Deployment/katib-controller"]["spec"]["template"]["metadata"]["labels"]
    assert dict(KATIB.labels).items() <= labels.items()
    others = [
        item for name, item in katib.items() if name.startswith("Deployment/") and "controller" not in name
    ]
    assert len(others) == 3
    for item in others:
        assert not KATIB.labels.items() <= item["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.usefixtures("minimal_and_released")
def test_a_pods_arguments_are_its_own_but_for_files(katib: dict[str, Object]) -> None:
    """The configuration is the changed one, and the API server is reached with a kubeconfig."""
    (container,) = containers(katib["Deployment/katib-controller"])
    given = [*container["args"], "-v=2"]
    assert KATIB.configuration(given) == "/katib-config.yaml"
    changed = KATIB.arguments(given, Path("/changed.yaml"), Path("/access"))
    assert changed == ["--katib-config=/changed.yaml", "--kubeconfig=/access", "-v=2"]


def test_a_pod_that_names_no_configuration_is_not_run() -> None:
    """A pod without a configuration does not run, and its status has the reason."""
    with pytest.raises(ControlPlaneError, match="jobset is given no --config=FILE"):
        JOBSET.configuration(["--zap-log-level=2"])


def _pod(*variables: Object) -> Object:
    return {
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": [{"env": list(variables)}]},
    }


def _field(path: str) -> Object:
    return {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}


def test_variables_are_words_and_fields_of_the_pod() -> None:
    """Variables are texts or fields of the pod, such as Katib's namespace."""
    variables = environment(_pod(_field("metadata.namespace"), {"name": "B", "value": "b"}, {"name": "C"}))
    assert variables == {"A": "n", "B": "b", "C": ""}


@pytest.mark.parametrize(
    "variable",
    [
        _field("status.podIP"),
        _field("metadata"),
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ],
    ids=["not there", "no text", "a Secret's"],
)
def test_other_variables_are_named(variable: Object) -> None:
    """The pod waits, and says for what."""
    with pytest.raises(NotMountedError, match="variable A"):
        environment(_pod(variable))
