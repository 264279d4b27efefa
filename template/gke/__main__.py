"""An ML cluster on GKE or AKS, as this stack's configuration declares it."""

import pulumi
from ebbtide.components import program

cluster = program.configured()
for name, value in program.outputs(cluster, program.deploy(cluster)).items():
    pulumi.export(name, value)
