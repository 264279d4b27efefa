"""The program of every stack: deploy the declared cluster, export its outputs."""

import pulumi

from stacks import stack

for name, value in stack.build().items():
    pulumi.export(name, value)
