"""Replay of jobs on a cluster with Kueue, in virtual time: the real Kueue, node pools, cost, waiting.

Kueue's objects, node pools with their prices, and a trace of jobs go in; starts, ends, nodes and costs come
out:

    from kueue_replay import replay

    result = replay({"clusters": [{"name": "dev", "pools": [...], "objects": [...]}], "trace": "jobs.csv"})
    result.document()

`python -m kueue_replay` reads such a request as JSON and writes the document.
"""

from kueue_replay.replays import Replay, Request, Result, program, replay

__version__ = "0.1.0"

__all__ = ["Replay", "Request", "Result", "program", "replay"]
