"""Sums of the cost record, and the command that shows them."""

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final, cast

import pytest
from typer.testing import CliRunner

from ebbtide.cli.entry_point import app
from ebbtide.clients.kubernetes import Api
from ebbtide.in_pods.cost_recorder import Recorder
from ebbtide.operations.ledger import BillingFileError, CostRecordError, Record, compare, read_record, report
from tests.pages import of_kind
from tests.unit.costs.cluster import SETTINGS, START, Cluster, Reader, done, node, pod

_HOUR = 3600


def _recorded() -> Cluster:
    """Two nodes for four hours, one without price, and two attempts of a GPU each, of which one runs."""
    cluster = Cluster()
    cluster.nodes = [node("one", START), node("two", START, pool="cpu")]
    cluster.pods = [pod("train-0", "one", START)]
    Recorder(cluster, SETTINGS, START).run()
    cluster.pods = [done("train-0", "one", START, START + 2 * _HOUR), pod("train-1", "one", START + _HOUR)]
    Recorder(cluster, SETTINGS, START + 4 * _HOUR).run()
    return cluster


def _read(cluster: Cluster, hours: float = 4) -> Record:
    return read_record(cast("Api", Reader(cluster.maps)), START, START + hours * _HOUR)


def test_work_and_idle_time() -> None:
    """Work costs its share of the node's price, and the rest of the nodes' cost is idle."""
    made = report(_read(_recorded()), START, "team")
    (team,) = made.work
    assert (team.name, team.attempts, team.running) == ("vision", 2, 1)
    assert team.cost == pytest.approx(1.2 * 0.25 * (2 + 3))
    nodes = {item.name: item for item in made.nodes}
    assert nodes["t4-spot"].cost == pytest.approx(1.2 * 4)
    assert (nodes["cpu"].cost, nodes["cpu"].unpriced_hours) == (0, 4)
    assert made.idle == pytest.approx(1.2 * 4 - 1.5)
    assert made.total.per_hour == pytest.approx(1.2)
    assert made.total.per_month == pytest.approx(1.2 * 730)
    assert "Pool cpu: no price is known for 4.0 node hours." in made.notes


def test_a_part_of_the_period() -> None:
    """Only the time within the period counts, and lines that ended before it are not in it."""
    made = report(_read(_recorded()), START + 3 * _HOUR, "job")
    (job,) = made.work
    assert (job.name, job.attempts) == ("vision/train", 1)
    assert job.cost == pytest.approx(1.2 * 0.25)


def test_what_was_not_recorded_is_named() -> None:
    """A period before the record, a recorder that does not run, and uncertain ends each have a sentence."""
    cluster = _recorded()
    made = report(_read(cluster, hours=6), START - _HOUR, "user")
    assert any(note.startswith("The record begins 2026-09-21 14:13 UTC") for note in made.notes)
    assert any(note.startswith("The recorder last ran 2026-09-21 18:13 UTC") for note in made.notes)
    cluster.nodes = []
    Recorder(cluster, SETTINGS, START + 5 * _HOUR).run()
    made = report(_read(cluster, hours=5), START, "user")
    assert "Nodes were deleted between two runs of the recorder: their cost is exact to 0.60." in made.notes


def test_work_that_is_not_recorded_yet_is_named() -> None:
    """Right after the first work, all cost is idle: the next run of the recorder changes that."""
    cluster = Cluster()
    cluster.nodes = [node("one", START)]
    Recorder(cluster, SETTINGS, START).run()
    made = report(_read(cluster, hours=0.1), START, "team")
    assert made.work == ()
    (note,) = (note for note in made.notes if "counts as idle time" in note)
    assert note.startswith("The recorder last ran 2026-09-21 14:13 UTC, and runs every five minutes: ")


def test_a_cluster_without_record() -> None:
    """A missing record, one that is not written yet, and one that may not be read, are errors that name the
    add-on, the next run or the namespace."""
    with pytest.raises(CostRecordError, match=r"addons: \{costs: \{\}\}"):
        read_record(cast("Api", Reader({})), START, START)
    with pytest.raises(CostRecordError, match="has not completed its first run"):
        read_record(cast("Api", Reader({"recorder": {"data": {}}})), START, START)
    with pytest.raises(CostRecordError, match="in namespace ebbtide-costs cannot be read"):
        read_record(cast("Api", Reader({}, status=403)), START, START)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command on the recorded cluster, after four hours."""
    reader = Reader(_recorded().maps, time=START + 4 * _HOUR)

    def of_user(_: str) -> Reader:
        return reader

    monkeypatch.setattr(Api, "of_user", of_user)

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, ["cost", *words], env={"COLUMNS": "80"})
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


def test_the_command(command: Any) -> None:
    """The text fits 80 columns, and has a monthly figure beside the hourly one."""
    text = command("--since", "8h", "--by", "user")
    assert max(map(len, text.splitlines())) <= 80
    assert "ada" in text
    assert "Idle: 3.30 (69% of the nodes' cost)" in text
    assert "1.20 an hour, 876.00 a month" in text


_BIGQUERY = """pool,currency,cost
t4-spot,USD,3.05
t4-spot,USD,1.80
system,USD,0.20
"""
_POOL, _OWN = {"goog-k8s-node-pool-name": "t4-spot"}, {"goog-k8s-cluster-name": "CLUSTER"}
_EXPORT: Final = (
    ("Compute Engine", _OWN | _POOL, 3.05, "2026-11-02 00:00:00+00"),
    ("Compute Engine", _OWN | _POOL | {"k8s-namespace": "vision"}, 1.80, "2026-11-01 00:00:00+00"),
    ("Compute Engine", _OWN | {"goog-k8s-node-pool-name": "system"}, 0.20, "2026-11-02 00:00:00+00"),
    ("Compute Engine", _OWN | _POOL, 7.0, "2026-10-31 23:00:00+00"),
    ("Compute Engine", _OWN | _POOL | {"goog-gke-volume": ""}, 7.0, "2026-11-02 00:00:00+00"),
    ("Compute Engine", {"goog-k8s-cluster-name": "other"} | _POOL, 7.0, "2026-11-02 00:00:00+00"),
    ("Kubernetes Engine", _OWN | _POOL, 7.0, "2026-11-02 00:00:00+00"),
)
"""Rows of the detailed usage cost export; the first three are of the cluster's nodes in the month."""


def test_the_query_of_the_billing_export() -> None:
    """The documented query sums the month's rows of the cluster's machines by pool, without disks of claims,
    other clusters and other services."""
    (query,) = (block.text for block in of_kind("sql") if block.page == "docs/costs.md")
    for written, ours in (("UNNEST(", "json_each("), ("service.description", "service_description")):
        assert written in query
        query = query.replace(written, ours)
    with closing(sqlite3.connect(":memory:")) as export:
        export.execute(
            "CREATE TABLE `PROJECT.DATASET.gcp_billing_export_resource_v1_ACCOUNT` "
            "(service_description, labels, cost_at_list, usage_start_time, currency)"
        )
        rows = [(service, json.dumps(labels), cost, at, "USD") for service, labels, cost, at in _EXPORT]
        export.executemany(
            "INSERT INTO `PROJECT.DATASET.gcp_billing_export_resource_v1_ACCOUNT` VALUES (?, ?, ?, ?, ?)",
            rows,
        )
        found = export.execute(query)
        assert [column for column, *_ in found.description] == ["pool", "currency", "cost"]
        assert sorted(found) == [("system", "USD", 0.2), ("t4-spot", "USD", pytest.approx(4.85))]


_TAGS = ('{""aks-managed-poolName"": ""t4-spot""}', '""env"": ""dev"",""aks-managed-poolName"": ""t4-spot""')


def _azure(*costs: float) -> str:
    rows = [f'11/01/2026,/vmss,"{tags}",{cost},USD' for tags, cost in zip(_TAGS, costs, strict=True)]
    head = "Date,ResourceId,Tags,CostInBillingCurrency,BillingCurrency"
    return "\n".join((head, *rows, "11/01/2026,/ip,,0.5,USD")) + "\n"


@pytest.mark.parametrize("text", [_BIGQUERY, _azure(3.05, 1.8)], ids=["bigquery", "azure"])
def test_the_billing_export_agrees(text: str, tmp_path: Path) -> None:
    """The rows of a pool's machines, disks and GPUs in a billing export add up to the recorded cost, within
    3 %; a pool that only one of them has, or without a price, does not agree."""
    file = tmp_path / "billing.csv"
    file.write_text(text)
    made = report(_read(_recorded()), START, "team")
    found = {item.pool: item for item in compare(file, made.nodes, "USD")}
    assert found["t4-spot"].billed == pytest.approx(4.85)
    assert found["t4-spot"].recorded == pytest.approx(4.8)
    assert found["t4-spot"].agrees
    assert found["cpu"].recorded is None
    assert not found["cpu"].agrees
    file.write_text(text.replace("3.05", "3.65"))
    assert not {item.pool: item for item in compare(file, made.nodes, "USD")}["t4-spot"].agrees


def test_an_invalid_billing_export(tmp_path: Path) -> None:
    """Missing columns, other currencies and costs that are not numbers are refused, each with its line."""
    file = tmp_path / "billing.csv"
    file.write_text("pool,cost\n")
    with pytest.raises(BillingFileError, match="Write pool, currency and cost"):
        compare(file, (), "USD")
    file.write_text("pool,currency,cost\na,EUR,1\nb,USD,x\n")
    with pytest.raises(BillingFileError) as raised:
        compare(file, (), "USD")
    assert [line.partition(": ")[0] for line in str(raised.value).splitlines()] == [f"{file}:2", f"{file}:3"]
    with pytest.raises(BillingFileError, match="cannot be read"):
        compare(tmp_path / "none.csv", (), "USD")


def test_the_command_compares(command: Any, tmp_path: Path) -> None:
    """The text has the difference of each pool, and one above 3 % or unknown is a negative result."""
    file = tmp_path / "billing.csv"
    file.write_text(_BIGQUERY)
    done = CliRunner().invoke(app, ["cost", "--billing", str(file)], env={"COLUMNS": "80"})
    assert done.exit_code == 1
    assert "-1.0%" in done.stdout
    assert command("--since", "8h")


def test_documents(command: Any) -> None:
    """JSON and CSV have the same sums as the text."""
    document = json.loads(command("--format", "json", "--month"))
    assert document["since"] == "2026-09-01T00:00:00+00:00"
    assert (document["currency"], document["idle"]) == ("USD", pytest.approx(3.3))
    rows = list(csv.DictReader(io.StringIO(command("--format", "csv", "--by", "pool"))))
    assert [(row["kind"], row["name"]) for row in rows] == [
        ("pool", "t4-spot"),
        ("nodes", "t4-spot"),
        ("nodes", "cpu"),
        ("idle", ""),
    ]
    assert float(rows[0]["cost"]) == pytest.approx(document["work"][0]["cost"])
