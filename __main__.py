"""The program of every stack: read the declaration, deploy the cluster, export its outputs."""

import pulumi

from stacks import settings, stack

for name, value in stack.build(settings.cluster()).items():
    pulumi.export(name, value)
