"""The program of every stack: deploy the declared cluster, export its outputs."""

import pulumi

from components import program

cluster = program.configured()
for name, value in program.outputs(cluster, program.deploy(cluster)).items():
    pulumi.export(name, value)
