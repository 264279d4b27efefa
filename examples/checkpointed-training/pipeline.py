"""Copy a checkpoint, train from it on preemptible GPUs, go on: `python pipeline.py` writes
checkpointed-training.yaml. The placement profile is the one that EBBTIDE_PROFILE names."""

from pathlib import Path

from kfp import compiler, components, dsl, kubernetes

from ebbtide.workloads.pipelines import retry_disruptions, use_pool

VOLUME = "shared"
"""A claim that steps on several nodes can write; a team's own is called so."""
MOUNTED = "/checkpoints"

_HERE = Path(__file__).parent
copydata = components.load_component_from_file(str(_HERE / "copydata.yaml"))
train = components.load_component_from_file(str(_HERE / "train.yaml"))


@dsl.component(base_image="python:3.12")
def report(distance: float) -> str:
    """What comes after the training."""
    text = f"The line is {distance:.3f} from the true one."
    print(text)
    return text


def _with_checkpoints(task: dsl.PipelineTask) -> dsl.PipelineTask:
    """Mount the volume, and run the step each time: what it did before is no reason to skip it."""
    kubernetes.mount_pvc(task, VOLUME, MOUNTED)
    return task.set_caching_options(enable_caching=False)


@dsl.pipeline(name="checkpointed-training")
def checkpointed_training(initial: str, root: str = MOUNTED, steps: int = 100_000, every: int = 1_000) -> str:
    """The copy is a step of its own: when `train` is run again, nothing is copied again. Each run of the
    pipeline has a directory of its own below `root`."""
    directory = f"{root}/{dsl.PIPELINE_JOB_ID_PLACEHOLDER}"
    copied = _with_checkpoints(copydata(source=initial, directory=directory))
    trained = _with_checkpoints(train(directory=directory, steps=steps, every=every)).after(copied)
    kubernetes.add_pod_label(trained, "step", "train")  # by which the logs of every attempt are found
    retry_disruptions(trained, 5, backoff="1s")
    use_pool(trained, "preemptible-gpu-pool", gpus=4, memory="48G", lasts="30h", checkpoints=True)
    return report(distance=trained.output).output


if __name__ == "__main__":
    compiler.Compiler().compile(checkpointed_training, "checkpointed-training.yaml")
