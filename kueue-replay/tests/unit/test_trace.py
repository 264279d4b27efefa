"""Traces of jobs: formats, and faults with their lines."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbtide.values.user_files import LARGEST_GENERATED
from kueue_replay import trace as traces
from kueue_replay.trace import MOST_JOBS, TraceError, TraceJob, read_trace


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file for a trace."""
    return tmp_path / "jobs.csv"


def faults(path: Path, text: str) -> list[str]:
    """Return the faults of a trace, without the file's name."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TraceError) as error:
        read_trace(path)
    return [line.removeprefix(f"{path}") for line in str(error.value).splitlines()]


def test_every_column_of_a_csv_is_read(file: Path) -> None:
    """Times count from the first submission, quantities are Kubernetes' own, durations may have units."""
    file.write_text(
        "submit,duration,name,pods,cpu,memory,gpus,gpu_type,queue,priority,checkpoint,deadline,user,keep_node\n"
        "2026-11-02T08:00:00Z,90m,a,2,500m,1Gi,4,nvidia-tesla-t4,vision/t4,ebbtide-high,10m,"
        "2026-11-02T10:00:00+00:00,ada,true\n"
        "2026-11-02T08:01:00,60,,,,,,,,,,,,\n",
        encoding="utf-8",
    )
    trace = read_trace(file)
    assert list(trace.jobs) == [
        TraceJob(
            2,
            "a",
            0.0,
            5400.0,
            2,
            0.5,
            2.0**30,
            4,
            "nvidia-tesla-t4",
            "vision/t4",
            "ebbtide-high",
            600.0,
            7200.0,
            "ada",
            keep_node=True,
        ),
        TraceJob(3, "", 60.0, 60.0),
    ]
    assert trace.midnight == 8 * 3600
    assert trace.start == datetime(2026, 11, 2, 8, tzinfo=UTC)


def test_all_faults_are_reported_with_their_lines(file: Path) -> None:
    """Negative times, malformed numbers, backward time, and wrong counts of cells are reported together."""
    text = (
        "submit,duration,pods,cpu,gpus,gpu_type,checkpoint,deadline\n"
        "10,-5,0,x,,t4,0,5\n"
        "-1,5,,,,,,\n"
        "20,5,,,,,,\n"
        "15,5,,,,,,\n"
        "21,5\n"
        "22,5,,,\x07,,,\n"
    )
    assert faults(file, text) == [
        ":2: duration is -5. Write seconds that are not negative, or a duration such as 90m.",
        ":2: pods is 0. Write a whole number from 1 on.",
        ":2: cpu is x. Write a quantity above 0, such as 4 or 500m.",
        ":2: gpu_type needs gpus. Write their number, or leave gpu_type empty.",
        ":2: checkpoint is 0. Write the time between two checkpoints, or leave it empty.",
        ":2: deadline is before submit. Write a later one, or leave it empty.",
        ":3: submit is -1. Write seconds that are not negative, or a time such as 2026-11-02T08:00:00Z.",
        ":5: submit is earlier than in a line above. Sort the lines by submit.",
        ":6: The line has 2 cells, and the header has 8. Write one for each column.",
        ":7: A cell has a control character. Remove it.",
    ]


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("submit,gpus", "Missing column duration."),
        ("submit,duration,gpu", "Unknown column gpu."),
        ("submit,submit,duration", "Repeated column submit."),
        ("", "Missing columns submit, duration."),
    ],
)
def test_wrong_columns_are_named(file: Path, head: str, words: str) -> None:
    """Missing, unknown and repeated columns are named, with all columns that exist."""
    (fault,) = faults(file, f"{head}\n1,2,3\n")
    assert fault.startswith(f":1: {words} Write submit,duration,name,user,pods,")


def test_a_trace_without_jobs_is_a_fault(file: Path) -> None:
    """Columns alone are not a trace."""
    assert faults(file, "submit,duration\n\n") == [
        ":1: The trace has no job. Write a line for each job below the line of columns."
    ]


def test_many_faults_are_counted(file: Path) -> None:
    """The first twenty faults are listed, and the others counted."""
    found = faults(file, "submit,duration\n" + "0,x\n" * 50)
    assert len(found) == 21
    assert found[-1] == ": 30 more faults."


def test_millions_of_lines_are_refused_before_they_are_read(file: Path) -> None:
    """The line of the first job too many is named."""
    (fault,) = faults(file, "submit,duration\n" + "0,1\n" * (MOST_JOBS + 5))
    assert fault.startswith(f":{MOST_JOBS + 2}: The trace has 1,000,005 lines")


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_largest_trace_is_read(file: Path, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are counted without the end of the last line."""
    monkeypatch.setattr(traces, "MOST_JOBS", 3)
    file.write_text("submit,duration\n" + "\n".join(["0,1"] * 3) + end, encoding="utf-8")
    assert len(read_trace(file).jobs) == 3


@pytest.mark.parametrize("head", ["submit,duration", "timestamp,duration,num_gpus,gpu_time,cluster"])
def test_times_of_many_years_are_refused(file: Path, head: str) -> None:
    """Kueue's clock ends after 292 years, and milliseconds reach it in a trace of months."""
    rest = "," * (head.count(",") - 1) if head.startswith("submit") else ",1,,vc"
    years = 365 * 86400
    assert faults(file, f"{head}\n0,60{rest}\n{11 * years},60{rest}\n{12 * years},{20 * years}{rest}\n") == [
        ":3: The job is submitted after 11 years, and 10 are the most that is replayed. Write seconds.",
        ":4: The job is submitted after 12 years, and 10 are the most that is replayed. Write seconds.",
        ":4: The job takes 20 years, and 10 are the most that is replayed. Write seconds.",
    ]
    file.write_text(f"{head}\n0,60{rest}\n{10 * years},{10 * years}{rest}\n", encoding="utf-8")
    assert read_trace(file).jobs[1].submit == 10 * years


def test_further_faults_of_a_declaration_are_reported_with_the_line(file: Path) -> None:
    """A check's faults, such as an unknown queue, stand beside the reader's."""
    file.write_text("submit,duration,queue\n0,x,a\n1,1,b\n", encoding="utf-8")
    with pytest.raises(TraceError, match=r"(?s)jobs.csv:2: duration is x.*jobs.csv:3: No queue b\."):
        read_trace(file, lambda job: [f"No queue {job.queue}."])


def test_swf_is_read(tmp_path: Path) -> None:
    """Processors are CPUs in total, memory is that of all processors, and cancelled jobs are counted."""
    swf = tmp_path / "log.swf"
    swf.write_text(
        "; Version: 2.2\n"
        "1 0 10 3600 8 -1 -1 16 7200 1048576 1 3 1 -1 2 -1 -1 -1\n"
        "2 5 -1 -1 -1 -1 -1 4 100 -1 5 3 1 -1 2 -1 -1 -1\n"
        "3 9 1 60 2 -1 -1 -1 -1 -1 1 3 1 -1 -1 -1 -1 -1\n",
        encoding="utf-8",
    )
    trace = read_trace(swf)
    assert list(trace.jobs) == [
        TraceJob(2, "1", 0.0, 3600.0, cpu=16.0, memory=16.0 * 2**30, queue="2"),
        TraceJob(4, "3", 9.0, 60.0, cpu=2.0),
    ]
    assert trace.notes[0].startswith("1 job cancelled")
    swf.write_text("; Version: 2.2\n1 2 3\n", encoding="utf-8")
    with pytest.raises(TraceError, match=r"log.swf:2: The line has 3 fields. Write the 18 of SWF\."):
        read_trace(swf)


def test_philly_is_read_and_sorted(file: Path) -> None:
    """Philly's GPUs are totals, its lines are in no order, and its virtual clusters are queues."""
    file.write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
        "2017-10-09 06:13:03,2951.0,16,47216.0,6214e9\n\n",
        encoding="utf-8",
    )
    trace = read_trace(file)
    assert list(trace.jobs) == [
        TraceJob(3, "", 0.0, 2951.0, gpus=16, queue="6214e9"),
        TraceJob(2, "", 2932.0, 66.0, gpus=1, queue="11cb48"),
    ]


def test_pai_is_read(file: Path) -> None:
    """Hours of PAI become seconds."""
    file.write_text("arrival_time,length,cpus\n1.0,0.5,8\n2.5,1,1\n", encoding="utf-8")
    assert list(read_trace(file).jobs) == [
        TraceJob(2, "", 0.0, 1800.0, cpu=8.0),
        TraceJob(3, "", 5400.0, 3600.0, cpu=1.0),
    ]


def test_openb_is_read(file: Path) -> None:
    """A pod of openb runs from its scheduling to its deletion; those that never ran are counted."""
    file.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
        "scheduled_time\n"
        "p0,12000,16384,1,460,V100M16|V100M32,LS,Running,100,500,150\n"
        "p1,12000,16384,1,1000,,BE,Pending,110,500,\n",
        encoding="utf-8",
    )
    trace = read_trace(file)
    expected = TraceJob(
        2, "p0", 0.0, 350.0, 1, 12.0, 16.0 * 2**30, gpus=1, gpu_type="V100M16|V100M32", queue="LS"
    )
    assert list(trace.jobs) == [expected]
    assert trace.notes[0].startswith("1 job never scheduled")


def test_a_file_that_is_too_large_is_refused_with_what_to_do(file: Path) -> None:
    """Ten million lines are one error, before they are read."""
    with file.open("wb") as content:
        content.truncate(LARGEST_GENERATED + 1)
    with pytest.raises(TraceError, match=r"over 64 MiB\. Write a part of it"):
        read_trace(file)
