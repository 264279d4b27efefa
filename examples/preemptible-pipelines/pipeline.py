"""A coin flip on preemptible nodes: `python pipeline.py` writes coin-flip.yaml. The placement profile is read
from EBBTIDE_PROFILE."""

from kfp import compiler, dsl

from ebbtide.work.pipelines import every_step, retry_disruptions, use_pool

IMAGE = "python:3.12"


@dsl.component(base_image=IMAGE)
def flip_coin(seed: int) -> str:
    """Return heads or tails, at random if the seed is 0."""
    import random

    return random.Random(seed or None).choice(["heads", "tails"])


@dsl.component(base_image=IMAGE)
def list_gpus() -> int:
    """Return the number of the step's GPUs, as listed by their driver."""
    import shutil
    import subprocess

    if shutil.which("nvidia-smi") is None:
        print("There is no NVIDIA driver here.")
        return 0
    listed = subprocess.run(["nvidia-smi", "-L"], check=True, capture_output=True, text=True).stdout
    print(listed)
    return len(listed.splitlines())


@dsl.component(base_image=IMAGE)
def say(what: str) -> str:
    """Print a sentence."""
    print(what)
    return what


@dsl.pipeline(name="coin-flip")
@every_step(dsl.PipelineTask.set_caching_options, enable_caching=False)
@every_step(retry_disruptions, 5, backoff="1m")
def coin_flip(seed: int = 0) -> None:
    """Heads requires a GPU and waits for one; tails runs on any machine.

    Steps are not cached: each run flips a coin, the listed GPUs depend on the node, and the log of each run
    needs a sentence.
    """
    flipped = use_pool(flip_coin(seed=seed), "preemptible-cpu-pool", hard=False)
    with dsl.If(flipped.output == "heads", "heads"):
        use_pool(list_gpus(), "preemptible-gpu-pool", gpus=1)
    with dsl.Else("tails"):
        use_pool(say(what="It was tails."), "preemptible-cpu-pool", hard=False)


if __name__ == "__main__":
    compiler.Compiler().compile(coin_flip, "coin-flip.yaml")
