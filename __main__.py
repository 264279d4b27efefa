"""The program of every stack: read the declaration, deploy the cluster, export its outputs."""

import pulumi

from stacks import stack

for name, value in stack.build(stack.cluster()).items():
    pulumi.export(name, value)
