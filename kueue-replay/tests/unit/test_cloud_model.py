"""Model of a cloud for replays: its file, draws and assumptions."""

import json
import math
from pathlib import Path

import pytest

from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.nodes import Autoscaling
from kueue_replay.cloud_model import (
    Availability,
    Cloud,
    CloudModel,
    CloudModelError,
    assumptions,
    read_cloud_model,
)
from rehearsal.tests.unit.node_pool import a_gpu_pool, a_pool


def cloud(seed: int = 1, **changes: object) -> Cloud:
    """A cloud with changes of the default model."""
    return Cloud(CloudModel.model_validate(changes), {}, seed, 0.0)


def test_defaults_are_those_of_the_rehearsal() -> None:
    """The durations of a replay and of a rehearsal come from one place."""
    model = CloudModel()
    assert model.settings() == NodeSettings()
    assert model.autoscaling() == Autoscaling()


def test_a_file_changes_the_defaults(tmp_path: Path) -> None:
    """A file has what differs, and names recorded stock beside it."""
    (tmp_path / "t4.json").write_text(json.dumps({"metadata": {"gap_seconds": 600}, "data": [0, 1, 1, 0]}))
    file = tmp_path / "cloud.yaml"
    file.write_text(
        "startup: {machines: {'a2-*': 240}}\nscaleDownSeconds: 120\nstock: {t4-spot: {file: t4.json}}\n"
    )
    model, recorded = read_cloud_model(file)
    assert model.autoscaling().idle_seconds == 120
    drawn = Cloud(
        model.model_copy(update={"startup": model.startup.model_copy(update={"spread": 0})}), recorded, 1, 0
    )
    assert drawn.startup_seconds(a_gpu_pool(machine="a2-highgpu-1g"), "n") == 240 + 20
    assert drawn.stock_from(a_pool("t4-spot"), 700) == 1800
    assert drawn.stock_from(a_pool("other"), 700) == 700


def test_faults_of_a_file_are_reported_together(tmp_path: Path) -> None:
    """Every fault has the file's name, the field, and what to write instead."""
    file = tmp_path / "cloud.yaml"
    file.write_text(
        "startup: {medium: 5, seconds: long}\nreclaims: {b: {every: -1, byHour: [1, 2]}}\n"
        "stock: {a: {every: 1, perHour: 2}}\n"
    )
    with pytest.raises(CloudModelError) as error:
        read_cloud_model(file)
    assert sorted(line.removeprefix(f"{file}: ") for line in str(error.value).splitlines()) == [
        "reclaims.b.byHour: byHour has 2 items. The model cannot be read. Write 24 items.",
        "reclaims.b.every: every is -1. The model cannot be read. Write more than 0, or omit it.",
        (
            "startup.medium: There is no medium here. The key would have no effect. Remove it, or write one "
            "of seconds, spread, driverSeconds, machines."
        ),
        (
            'startup.seconds: seconds is the text "long"; expected a number. The model cannot be read. Write '
            "a number here, or omit it."
        ),
        "stock.a: every, perHour and file exclude each other. The model cannot be read. Write one of them.",
    ]
    file.write_text("stock: {a: {file: no.json}}\n")
    with pytest.raises(CloudModelError, match=r"no.json: The file cannot be read"):
        read_cloud_model(file)
    (tmp_path / "no.json").write_text("[]")
    with pytest.raises(CloudModelError, match=r"no.json: Write .*1 means not available"):
        read_cloud_model(file)


def test_reclaims_follow_the_hour_of_day() -> None:
    """Only spot nodes are reclaimed, at the rate of the hour, and each node has its own draw."""
    at_noon = tuple(float(hour == 12) for hour in range(24))
    drawn = cloud(reclaims={"spot": {"perHour": 100, "byHour": at_noon}})
    times = [drawn.reclaim_at(a_pool(), f"node-{number}", 0.0) for number in range(50)]
    assert {int(at // 3600) for at in times} == {12}
    assert len(set(times)) == 50
    assert drawn.reclaim_at(a_pool(capacity="on-demand"), "node", 0.0) == math.inf


def test_the_rate_of_reclaims_is_the_declared_one() -> None:
    """Exponential times have their mean, one in four hours."""
    drawn = cloud(reclaims={"*": {"perHour": 0.25}})
    times = [drawn.reclaim_at(a_pool(), f"node-{number}", 0.0) for number in range(4000)]
    assert sum(times) / len(times) == pytest.approx(4 * 3600, rel=0.05)


def test_stock_outs_end_and_come_again() -> None:
    """A stock-out every hour lasts ten minutes; the next begins an hour after its end."""
    drawn, pool = cloud(stock={"*": {"every": 3600, "lasts": 600}}), a_pool()
    assert [drawn.stock_from(pool, at) for at in (0, 3599, 3600, 4199, 4200, 7800, 100)] == [
        0,
        3599,
        4200,
        4200,
        4200,
        8400,
        100,
    ]


def test_recorded_stock_repeats() -> None:
    """The next time with or without stock is found beyond the end of the record."""
    recorded = Availability(10.0, (False, True, False))
    assert recorded.next(25, out=True) == 40
    assert recorded.next(41, out=False) == 50
    assert Availability(10.0, (False,)).next(5, out=True) == math.inf


def test_each_assumption_is_changed_alone() -> None:
    """Half and twice of an assumption changes one field of the model; twice a rate is more reclaims."""
    model, twice = CloudModel(), assumptions(CloudModel(), 2)
    assert twice["startup of nodes"].startup.seconds == 2 * model.startup.seconds
    assert twice["delay of scale-down"].scale_down_seconds == 1200
    assert twice["rate of reclaims"].reclaims["spot"].per_hour == pytest.approx(0.0088)
    for changed in twice.values():
        different = [
            name for name in CloudModel.model_fields if getattr(changed, name) != getattr(model, name)
        ]
        assert len(different) <= 1
