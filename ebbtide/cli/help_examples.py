"""One example for each command's `--help`."""

from collections.abc import Mapping
from typing import Final

from ebbtide.text import command_line

EXAMPLES: Final[Mapping[str, str]] = {
    "preview": "preview dev --format json --out preview.json",
    "review": "review dev --against main",
    "schema": "schema stack --out stack.schema.json",
    "machines": "machines --gpu t4 --region us-central1",
    "prices refresh": "prices refresh dev --out prices.csv",
    "quota": "quota dev",
    "profile": "profile dev --out profile.json",
    "run": "run --pool t4-spot --gpus 1 -- python train.py",
    "shell": "shell --pool t4-spot --gpus 1 --idle 30m",
    "notebook": "notebook --pool t4-spot --gpus 1 --volume shared",
    "job": (
        "job train --profile profile.json --image busybox \\\n"
        "      --pool t4-spot --gpus 4 --memory 40Gi -- python train.py"
    ),
    "sweep": (
        "sweep seeds --profile profile.json --image busybox \\\n"
        "      --pool cpu-spot --set lr=0.1,0.01 --set seed=1,2,3 -- python train.py"
    ),
    "config set": "config set pool=t4-spot namespace=vision",
    "config get": "config get pool",
    "config unset": "config unset pool",
    "logs": "logs train --follow",
    "cp": "cp train:model.pt results --namespace vision",
    "cost": "cost --since 7d --by user",
    "follow": "follow train --namespace vision",
    "jobs": "jobs --all --namespace vision",
    "why": "why train --namespace vision",
    "cancel": "cancel train --namespace vision",
    "rerun": "rerun train --namespace vision -- python train.py --lr 0.2",
    "rehearse": "rehearse dev --scenario spot-storm",
    "replay": "replay examples/traces/dev.csv dev --against main",
    "trace fetch": "trace fetch philly",
    "trace export": "trace export --since 30d --all-namespaces --out jobs.csv",
    "up": "up dev",
    "status": "status dev --watch",
    "sleep": "sleep dev --wait",
    "wake": "wake dev",
    "extend": "extend dev --hours 4",
    "reap": "reap --yes",
    "destroy": "destroy dev",
}
"""Arguments by command; pools and namespaces are those of the repository's stack dev."""


def epilog(command: str) -> str:
    """Return the last paragraph of a command's help: its example, with line breaks kept."""
    return f"\b\nExample:\n  {command_line()} {EXAMPLES[command]}"
