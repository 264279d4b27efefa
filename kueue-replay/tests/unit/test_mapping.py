"""Jobs of traces on a declaration: queues, accelerators, pods and requests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from first_in import a_declaration
from kueue_replay.cluster import Shape
from kueue_replay.mapping import Mapper, Table, check_table, read_table
from kueue_replay.trace import Trace, TraceError, TraceJob


def a_job(**fields: Any) -> TraceJob:
    """A job of an hour."""
    return TraceJob(1, "", 0.0, 3600.0, **fields)


def mapper(*, own: bool = True, **table: dict[str, str]) -> Mapper:
    """Map to the test's declaration."""
    return Mapper(a_declaration(), Table.model_validate(table), own=own)


def test_unknown_names_are_faults_of_a_csv() -> None:
    """Queue, accelerators and priority that are not declared are faults, with what is."""
    faults = list(mapper().faults(a_job(queue="vison/t4", gpus=1, gpu_type="h100", priority="ebbtide-hi")))
    queues = (
        "Declared are vision/t4, vision/cpu, speech/queued; work in no queue names a pool: t4, cpu, queued. "
        "--map maps other names."
    )
    assert faults == [
        f"No queue vison/t4 is declared; did you mean vision/t4? {queues}",
        "No pool has accelerators h100. Write nvidia-tesla-a100 or nvidia-tesla-t4, or map it with --map.",
        "No priority ebbtide-hi is declared; did you mean ebbtide-high?",
    ]
    assert list(mapper().faults(a_job())) == [f"The job has no queue. {queues}"]


def test_short_names_and_the_table_are_accepted() -> None:
    """A queue may lack its namespace, an accelerator its vendor, and a table maps any name."""
    for job in (a_job(queue="t4", gpus=1, gpu_type="t4"), a_job(queue="vision/cpu")):
        assert not list(mapper().faults(job))
    mapped = mapper(queues={"*": "vision/t4"}, gpuTypes={"V100": "nvidia-tesla-t4"})
    assert not list(mapped.faults(a_job(queue="x", gpus=1, gpu_type="V100")))


def test_work_in_no_queue_names_its_pool() -> None:
    """A pool is accepted with or without a namespace; without any queue, public traces take turns among
    pools."""
    without = replace(a_declaration(), queues={})
    every = Mapper(without, Table(), own=False)
    trace = Trace("t", "philly", [a_job(gpus=1, queue=name) for name in "ab"], 0.0)
    assert [work.queue.name for work in every.mapped(trace).work] == ["t4", "queued"]
    own = Mapper(without, Table(), own=True)
    assert not [*own.faults(a_job(queue="vision/t4")), *own.faults(a_job(queue="cpu"))]
    (fault,) = own.faults(a_job(queue="t5"))
    assert fault == (
        "No queue t5 is declared. There are no queues; work in no queue names a pool: t4, cpu, queued. "
        "--map maps other names."
    )


def test_a_table_with_undeclared_names_is_refused(tmp_path: Path) -> None:
    """Faults of the table name the declaration; a malformed one names its field."""
    with pytest.raises(TraceError, match=r"dev: The table names queue vision/t5(?s:.*)accelerator h100"):
        check_table([mapper(queues={"*": "vision/t5"}, gpuTypes={"*": "h100"})])
    file = tmp_path / "map.yaml"
    file.write_text("queue: {}\n")
    with pytest.raises(TraceError, match=r"map.yaml: queue: There is no queue here; did you mean queues\?"):
        read_table(file)
    file.write_text("[]\n")
    with pytest.raises(TraceError, match=r"map.yaml: The table is a list; .* Write a mapping\.$"):
        read_table(file)


def test_totals_are_split_by_the_nodes() -> None:
    """Without a number of pods, GPUs are split over as few equal pods as the nodes need."""
    trace = Trace("t", "philly", [a_job(gpus=6), a_job(gpus=3), a_job(cpu=9.0)], 0.0)
    mapped = mapper(own=False, queues={"": "vision/t4"}).mapped(trace)
    assert [(work.pods, work.shape) for work in mapped.work] == [
        (2, Shape(6000, 24576, 3, "nvidia.com/gpu")),
        (1, Shape(6000, 24576, 3, "nvidia.com/gpu")),
        (2, Shape(4500, 18432)),
    ]
    assert mapped.rows == {("", "", "vision/t4"): 1, ("", "any", "vision/t4"): 2}


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_shares_of_a_node_fill_it(gpus: int) -> None:
    """Pods with a part of its GPUs fill a node, whatever its CPU and memory divide to."""
    declaration = a_declaration()
    node = Shape(15490, 55163, 4, "nvidia.com/gpu")
    odd = replace(declaration, capacity={**declaration.capacity, "t4": node})
    trace = Trace("t", "csv", [a_job(queue="vision/t4", pods=1, gpus=gpus)], 0.0)
    (work,) = Mapper(odd, Table(), own=True).mapped(trace).work
    count = 4 // gpus
    assert node.cpu - count < count * work.shape.cpu <= node.cpu
    assert node.memory - count < count * work.shape.memory <= node.memory


@pytest.mark.parametrize(
    ("requested", "rounded"), [(3.872, 3872), (3.0, 3000), (2.583, 2590), (0.1, 100), (20.001, 20010)]
)
def test_requests_are_rounded_while_as_many_pods_fit(requested: float, rounded: int) -> None:
    """Requests are rounded up to 10 millicores, unless a node had fewer pods then."""
    declaration = a_declaration()
    odd = replace(declaration, capacity={**declaration.capacity, "cpu": Shape(15490, 55163)})
    trace = Trace("t", "csv", [a_job(queue="vision/cpu", pods=1, cpu=requested)], 0.0)
    (work,) = Mapper(odd, Table(), own=True).mapped(trace).work
    assert work.shape.cpu == rounded


def test_a_job_that_fills_a_node_is_one_pod() -> None:
    """Sixteen and a tenth CPUs are 16,100 millicores, although their product is a little more."""
    declaration = a_declaration()
    exact = replace(declaration, capacity={**declaration.capacity, "cpu": Shape(16100, 55163)})
    trace = Trace("t", "csv", [a_job(queue="vision/cpu", cpu=16.1)], 0.0)
    (work,) = Mapper(exact, Table(), own=True).mapped(trace).work
    assert (work.pods, work.shape.cpu) == (1, 16100)


def test_names_of_a_public_trace_take_turns() -> None:
    """Queues of a public trace are spread over those whose pools fit, the same name always to the same."""
    jobs = [a_job(gpus=1, queue=name) for name in ("a", "b", "a", "c")] + [a_job(cpu=1.0, queue="a")]
    mapped = mapper(own=False).mapped(Trace("t", "philly", jobs, 0.0))
    assert [work.queue.name for work in mapped.work] == [
        "vision/t4",
        "speech/queued",
        "vision/t4",
        "vision/t4",
        "vision/cpu",
    ]


def test_requests_are_counted_with_their_pods() -> None:
    """Totals of a trace became equal pods on the declaration's nodes; the most frequent come first."""
    jobs = [a_job(gpus=8, queue="x"), a_job(pods=2, cpu=0.5, memory=2.0**29, queue="y")]
    shapes = mapper(own=False).mapped(Trace("t", "philly", [jobs[0], *jobs], 0.0)).shapes
    assert list(shapes.items()) == [
        (("8 GPUs", "2 pods, each 4 GPUs, 8 CPU, 32 GiB"), 2),
        (
            (
                "2 pods, each 0.5 CPU, 512 MiB",
                "2 pods, each 0.5 CPU, 512 MiB",
            ),
            1,
        ),
    ]


@pytest.mark.parametrize(
    ("checkpoint", "fits"), [(None, False), (7 * 86400.0, True), (7 * 86400.0 + 1, False)]
)
def test_work_fits_nodes_that_live_until_its_next_checkpoint(checkpoint: float | None, fits: bool) -> None:  # noqa: FBT001
    """Nodes of queued capacity live 7 days: a longer job needs a checkpoint in that time."""
    job = replace(a_job(queue="speech/queued", gpus=1, checkpoint=checkpoint), seconds=8 * 86400.0)
    (work,) = mapper().mapped(Trace("t", "csv", [job], 0.0)).work
    assert (work.why_not == "") == fits


def test_work_without_accelerators_never_runs_on_queued_nodes_with_them() -> None:
    """Pods of the job are not in the request for such nodes; a public trace's work avoids these queues."""
    (work,) = mapper().mapped(Trace("t", "csv", [a_job(queue="speech/queued", cpu=1.0)], 0.0)).work
    assert work.why_not == "nodes of pool queued are provisioned for pods with its accelerators alone"
    queues = {name: queue for name, queue in a_declaration().queues.items() if name != "vision/cpu"}
    public = Mapper(replace(a_declaration(), queues=queues), Table(), own=False)
    trace = Trace("t", "pai", [a_job(queue=name, cpu=1.0) for name in "ab"], 0.0)
    assert {work.queue.name for work in public.mapped(trace).work} == {"vision/t4"}
