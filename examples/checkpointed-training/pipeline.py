"""Copy a checkpoint, train from it on preemptible GPUs, resume: `python pipeline.py` writes
checkpointed-training.yaml. The placement profile is read from EBBTIDE_PROFILE."""

from pathlib import Path

from kfp import compiler, components, dsl, kubernetes

from ebbtide.work.pipelines import retry_disruptions, use_identity, use_pool, use_volume

VOLUME = "shared"
"""The claim that the stack creates, with the team's bucket mounted."""
MOUNTED = "/checkpoints"

_HERE = Path(__file__).parent
copydata = components.load_component_from_file(str(_HERE / "copydata.yaml"))
train = components.load_component_from_file(str(_HERE / "train.yaml"))


@dsl.component(base_image="python:3.12")
def report(distance: float) -> str:
    """Report the result of the training."""
    text = f"The points are {distance:.3f} from the line."
    print(text)
    return text


def _with_checkpoints(task: dsl.PipelineTask) -> dsl.PipelineTask:
    """Mount the volume, use addresses in buckets, and disable caching: the step writes files, which a cached
    result would not restore."""
    use_volume(task, VOLUME, MOUNTED)
    use_identity(task)
    return task.set_caching_options(enable_caching=False)


@dsl.pipeline(name="checkpointed-training")
def checkpointed_training(
    initial: str, data: str, root: str = MOUNTED, steps: int = 100_000, every: int = 1_000
) -> str:
    """The copy is a separate step, so that a retry of `train` does not repeat it. Each run of the pipeline
    has its own directory below `root`.

    Args:
        initial: the initial checkpoint; like the next two a path on the volume, or an address in a bucket.
        data: the points.
        root: parent directory of the runs' directories.
        steps: number of training steps.
        every: number of steps between two checkpoints.
    """
    # Kubeflow Pipelines only replaces the id if it is the whole input (2.17.0, backend/src/v2/driver).
    run = dsl.PIPELINE_JOB_ID_PLACEHOLDER
    copied = _with_checkpoints(copydata(source=initial, directory=root, run=run))
    trained = _with_checkpoints(train(data=data, directory=root, steps=steps, every=every, run=run))
    trained.after(copied)
    kubernetes.add_pod_label(trained, "step", "train")  # selects the logs of every attempt
    retry_disruptions(trained, 5, backoff="1s")
    use_pool(trained, "preemptible-gpu-pool", gpus=4, memory="48G", lasts="30h", checkpoints=True)
    return report(distance=trained.output).output


if __name__ == "__main__":
    compiler.Compiler().compile(checkpointed_training, "checkpointed-training.yaml")
