"""A training loop, to be killed: `python training.py ROOT`. It prints each step that it has saved."""

import json
import sys

from ebbtide.in_pods.checkpoints import Checkpoint, Checkpoints, NewerCheckpointError

State = dict[str, list[int]]


def weights(step: int) -> bytes:
    """Return the model after a step: a few pages of bytes."""
    return step.to_bytes(8, "big") * 4096


def read(checkpoint: Checkpoint | None) -> State:
    """The state in a checkpoint, which must be one that training reached."""
    if checkpoint is None:
        return {"seen": []}
    state: State = json.loads((checkpoint.path / "state.json").read_text())
    assert state["seen"] == list(range(1, checkpoint.step + 1)), "a step was lost, or counted twice"
    assert (checkpoint.path / "shards" / "0.bin").read_bytes() == weights(checkpoint.step)
    return state


def resumed(checkpoints: Checkpoints) -> State:
    """The state of the latest checkpoint; of the next one if other writers have it removed meanwhile."""
    while True:
        latest = checkpoints.latest()
        try:
            return read(latest)
        except FileNotFoundError:
            if checkpoints.latest() == latest:
                raise


def save(checkpoints: Checkpoints, state: State) -> None:
    """Save a state, in files of a directory and one below."""
    with checkpoints.saving(len(state["seen"])) as directory:
        (directory / "state.json").write_text(json.dumps(state))
        (directory / "shards").mkdir()
        (directory / "shards" / "0.bin").write_bytes(weights(len(state["seen"])))


def main(root: str) -> None:
    """Train from the latest checkpoint on; where another writer is ahead, from its."""
    checkpoints = Checkpoints(root)
    state = resumed(checkpoints)
    print(len(state["seen"]), flush=True)  # noqa: T201
    while True:
        state["seen"].append(len(state["seen"]) + 1)
        try:
            save(checkpoints, state)
        except NewerCheckpointError:
            state = resumed(checkpoints)
        print(len(state["seen"]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
