"""The contract between the program and `ebbtide up` for replaced pools: configuration and names."""

from typing import Final

NAMESPACE: Final = "ebbtide"
CONFIG: Final = "replacements"
"""The configuration key of one run: pools, each with `name`, `nodes` and `inputs`."""
SUFFIX: Final = ".next"
"""Suffix of the replacement's resource name. No pool's name contains a dot."""
