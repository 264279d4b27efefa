"""The text of a preview: complete at any width, plain without a terminal."""

import io

import pulumi
import pulumi_gcp as gcp
import pytest
from pulumi import Output, ResourceOptions
from rich.console import Console

from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.preview_document import Preview
from ebbtide.analysis.preview.render_preview import render
from ebbtide.analysis.recording.recording import Recording
from tests.unit.recording.programs import Part, network, run


def _text(preview: Preview, width: int, *, terminal: bool = False, **options: bool) -> str:
    out = io.StringIO()
    render(preview, Console(file=out, width=width, force_terminal=terminal, highlight=False), **options)
    return out.getvalue()


def _taint(key: str) -> gcp.container.NodePoolNodeConfigTaintArgs:
    return gcp.container.NodePoolNodeConfigTaintArgs(key=key, value="true", effect="NO_SCHEDULE")


def _program() -> None:
    train = Part("train", type_="test:parts:Topology")
    cluster = gcp.container.Cluster(
        "train-cluster",
        name="train",
        location="us-central1-a",
        remove_default_node_pool=True,
        opts=ResourceOptions(parent=train, protect=True),
    )
    for name, minimum, taint in (("system", 1, None), ("t4-spot", 0, "cloud.google.com/gke-spot")):
        gcp.container.NodePool(
            f"train-{name}",
            name=name,
            cluster=cluster.name,
            location="us-central1-a",
            node_locations=["us-central1-a"] if taint else None,
            autoscaling=gcp.container.NodePoolAutoscalingArgs(
                total_min_node_count=minimum, total_max_node_count=4
            ),
            node_config=gcp.container.NodePoolNodeConfigArgs(
                machine_type="a2-highgpu-1g" if taint else "e2-standard-2",
                spot=bool(taint),
                taints=[_taint(taint)] if taint else None,
                metadata={"token": Output.secret("hunter22")} if taint else None,
            ),
            opts=ResourceOptions(parent=train, deleted_with=cluster),
        )
    gcp.compute.Network(
        "vpc",
        name="vpc",
        description=Output.concat("for ", cluster.endpoint),
        opts=ResourceOptions(parent=train, retain_on_delete=True),
    )
    gcp.compute.Network.get("old", "projects/acme/global/networks/old")
    pulumi.export("clusterName", cluster.name)
    pulumi.export("kubeconfig", Output.secret("hunter22"))
    pulumi.export("server", Output.concat("https://", cluster.endpoint))
    pulumi.export("version", cluster.master_version)
    pulumi.export("profile", {"pools": [1, 2], "queues": []})
    pulumi.export("names", ["a", "b"])
    pulumi.log.warn("The control plane is open to all networks, which is not what most people want.")
    pulumi.log.info("made it")


@pytest.fixture(scope="module")
def preview() -> Preview:
    """Return the preview of a program with every kind of value."""
    return preview_of(run(_program, gcp__project="acme"))


_OVERVIEW = """\
shop/dev: train on GKE in us-central1-a; an offline preview

Warnings
- warning: The control plane is open to all networks, which is not what most people want.

Policy
- mandatory: private-nodes, cluster train: Its nodes have public addresses by default.

POOL     MACHINE        VCPU  GIB  CAPACITY   NODES   IDLE $/H  MAX $/H
system   e2-standard-2     2    8  on-demand  1 to 4     0.081     0.32
t4-spot  a2-highgpu-1g    12   85  spot       0 to 4      0.00     7.77
    1 x nvidia-tesla-a100

Cost 0.18 $/h idle, 8.19 at most, 15.17 on demand; $/month 132 idle, 5,978 at most, 11,075 on
  demand (list prices of 2025-03 to 2026-09). control plane 0.10 (one zonal cluster may be free)
Quotas us-central1: CPUS 8, SSD_TOTAL_GB 800, A2_CPUS 48, PREEMPTIBLE_NVIDIA_A100_GPUS 4; global:
  GPUS_ALL_REGIONS 4

Policy advisory: control-plane-access (cluster train)
Outputs clusterName, kubeconfig, names, profile, server, version
4 resources to create, 1 protected. More: --tree, --values, --format json.
"""

_TREE = """\
Resources
├── train  test.parts.Topology
│   ├── …-cluster  gcp.container.Cluster, protected
│   ├── …-system  gcp.container.NodePool †
│   ├── …-t4-spot  gcp.container.NodePool †, secret token
│   └── vpc  gcp.compute.Network, retained on delete, assumed description
└── old  gcp.compute.Network, existing
† deleted with train-cluster

Outputs
clusterName  train
kubeconfig   [secret]
names        a list of 2
profile      an object: pools, queues
server       https://192.0.2.10 (assumed)
version      [unknown]

Messages
- made it

6 resources: 4 to create, 1 protected, 2 deleted with another, 1 retained on delete, 1 existing, 1
component.
No cloud was contacted. Values marked assumed replace a cloud's response; ids that a cloud derives
from names are not marked. `--format json` lists all of them.
"""


def test_the_overview_at_100_columns(preview: Preview) -> None:
    """Warnings, pools, cost and quotas, and no resources."""
    assert _text(preview, 100) == _OVERVIEW


def test_the_tree_at_100_columns(preview: Preview) -> None:
    """The rest of the text with `--tree`."""
    text = _text(preview, 100, tree=True)
    assert text[text.index("Resources\n") :] == _TREE


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_nothing_is_cut_off_at_any_width(preview: Preview, width: int) -> None:
    """Lines are wrapped, not cropped; none is wider than the terminal, none ends in blanks."""
    text = _text(preview, width, values=True)
    lines = text.splitlines()
    assert all(len(line) <= width for line in lines)
    assert all(line == line.rstrip() for line in lines)
    words = "".join(text.split())
    for expected in (
        "e2-standard-2",
        "1xnvidia-tesla-a100",
        "cloud.google.com/gke-spot=true:NoSchedule",
        "gcp.container.NodePool",
        "whichisnotwhatmostpeoplewant",
    ):
        assert expected in words.replace("│", "").replace("├──", "")


def test_narrow_tables_say_the_rest_below(preview: Preview) -> None:
    """A column that has no room becomes a line."""
    text = _text(preview, 50)
    assert "POOL     MACHINE        NODES   IDLE $/H  MAX $/H\n" in text
    assert "vcpu 12; gib 85; capacity spot; 1 x nvidia-tesla-a100" in text.replace("\n    ", " ")


def test_values_show_a_long_object_by_its_members(preview: Preview) -> None:
    """A pool's nodeConfig is whole, although its JSON is too long for a line."""
    text = _text(preview, 200, values=True)
    assert "nodeConfig.machineType: a2-highgpu-1g\n" in text
    assert '"key": "cloud.google.com/gke-spot"' in text
    assert "nodeConfig.spot: true\n" in text
    assert 'autoscaling: {"totalMaxNodeCount": 4, "totalMinNodeCount": 0}\n' in text


def test_plain_without_a_terminal(preview: Preview) -> None:
    """Control sequences only for a terminal."""
    assert "\x1b[" not in _text(preview, 120)
    assert "\x1b[" in _text(preview, 120, terminal=True)


def test_markup_in_names_is_text() -> None:
    """A name is what it is, also where it looks like an instruction to the console."""

    def program() -> None:
        network("[bold]net[/bold]")
        pulumi.export("emoji", ":warning: [red]x[/red]")

    text = _text(preview_of(run(program)), 80, tree=True)
    assert "[bold]net[/bold]" in text
    assert ":warning: [red]x[/red]" in text


def test_a_long_output_is_shown_in_part() -> None:
    """A long output, such as a compressed profile, is truncated, and complete in the JSON document."""

    def program() -> None:
        pulumi.export("profile", "sha256:0a23 " + "x" * 2000)
        pulumi.export("limit", "y" * 200)

    text = _text(preview_of(run(program)), 80, tree=True)
    assert "a text of 2012 characters: sha256:0a23 xxxxxxxxxxxx…" in text
    assert text.count("y") >= 200


def test_a_preview_of_nothing() -> None:
    """The text says that there is nothing."""
    text = _text(preview_of(Recording(project="shop", stack="dev")), 80)
    assert text.splitlines()[0] == "shop/dev: an offline preview"
    assert "0 resources to create." in text
