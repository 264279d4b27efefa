"""Agreement of Kueue in virtual time with the real controller on the real API server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from components.addons.kueue import configuration
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.queue_objects import QUEUES_LABEL
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.tools.progress import narrated
from kueue_cases import CLASSICAL, CLASSICAL_CONFIGURATION, FAIR, FAIR_CONFIGURATION, FLAVORS
from kueue_grid import Agreement, Case, agreement, in_virtual_time
from kueue_jobs import NAMESPACE, flavors
from kueue_replay.kueue import ORDER, PROGRAM
from rehearsal.tests.control_plane.kueue import started
from rehearsal.tests.control_plane.kueue_jobs_in_real_time import in_real_time, priority_classes
from tests.declarations import GKE

pytestmark = [pytest.mark.rehearsal, pytest.mark.long, pytest.mark.alone]

LEAST = 0.99
"""Share of a case's events that are the same."""


@pytest.mark.parametrize(
    ("cases", "changes"),
    [(CLASSICAL, CLASSICAL_CONFIGURATION), (FAIR, FAIR_CONFIGURATION)],
    ids=["classical", "fair"],
)
def test_virtual_time_agrees_with_the_real_controller(
    tools: ControlPlaneTools,
    chart_tools: ControlPlaneTools,
    tmp_path: Path,
    cases: Mapping[str, Case],
    changes: Mapping[str, Any],
) -> None:
    """At least 99 % of the events of each case are the same in virtual time and in each of two runs on the
    real API server; the rows of the page's table are printed."""
    program = narrated([PROGRAM]).path(PROGRAM)
    declaration = declare(GKE)
    config = configuration(declaration) | dict(changes)
    copies = {f"case{number}{copy}-": case for copy in "ab" for number, case in enumerate(cases.values())}
    shared = flavors(*FLAVORS)
    with started(tmp_path, tools, chart_tools, declaration, config) as (cluster, kubectl):
        cluster.api.patch(f"/api/v1/namespaces/{NAMESPACE}", {"metadata": {"labels": {QUEUES_LABEL: "true"}}})
        objects = [*shared, *(item for prefix, case in copies.items() for item in case.objects(prefix))]
        kubectl.apply(sorted(objects, key=lambda item: ORDER.index(item["kind"])))
        kubectl.apply(priority_classes(cases.values()))
        real = in_real_time(cluster.api, copies)
        cluster.check()
    different: dict[str, int] = {}
    for number, (name, case) in enumerate(cases.items()):
        found: list[Agreement] = []
        for copy in "ab":
            rows, extensions = real[f"case{number}{copy}-"]
            found.append(agreement(in_virtual_time(program, case, config, shared, extensions), rows))
            if found[-1].same < LEAST * found[-1].events:
                different[f"{name}, {copy}"] = sum(1 for seconds in extensions if seconds)
        print(f"| {name} | {len(case.jobs)} | {found[0]} | {found[1]} |")  # noqa: T201
    assert not any(different.values()), f"Real time was late; extended slots by run: {different}"
    assert not different
