"""The program of every stack: read the declaration, make the cluster, say where it is."""

import pulumi

from stacks import settings, stack

for name, value in stack.build(settings.cluster()).items():
    pulumi.export(name, value)
