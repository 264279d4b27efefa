"""A cluster that this stack has adopted, as its configuration declares it."""

import pulumi
from ebbtide.components import program

cluster = program.declared(pulumi.Config("ebbtide").require_object("cluster"))
for name, value in program.outputs(cluster, program.deploy(cluster)).items():
    pulumi.export(name, value)
