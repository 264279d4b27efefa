"""The data of every rehearsal: files that Go modules contain besides programs."""

from typing import Final

from ebbtide_rehearsal.tools.items import Condition, from_module

DATA: Final = (
    from_module(
        "kwok-stages",
        "kueue",
        "sigs.k8s.io/kwok",
        "kwok",
        "kustomize/stage",
        "kwok's stages for nodes and pods.",
    ),
    from_module(
        "kwok-crds",
        "kueue",
        "sigs.k8s.io/kwok",
        "kwok",
        "kustomize/crd/bases",
        "kwok's kinds for logs, exec, attach and port-forward.",
    ),
    from_module(
        "pulumi-language-python-exec",
        "pulumi",
        "github.com/pulumi/pulumi/sdk/v3",
        "pulumi",
        "python/cmd",
        "The language host's script that starts a program.",
        Condition.BY_NAME,
    ),
)
