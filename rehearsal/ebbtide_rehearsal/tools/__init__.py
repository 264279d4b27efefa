"""The programs, charts and manifests of a rehearsal: found on this machine, or downloaded or built once.

No binary is committed. A release is verified by its hash in `releases.csv`, and a build by the hashes of its
Go modules in `modules/*/go.sum`.
"""

from ebbtide_rehearsal.tools.errors import ToolError
from ebbtide_rehearsal.tools.find import AvailableTool, Origin, Tools, ensure
from ebbtide_rehearsal.tools.progress import narration
from ebbtide_rehearsal.tools.steps import OnStep, Step
from ebbtide_rehearsal.tools.table import all_items, needed

__all__ = [
    "AvailableTool",
    "OnStep",
    "Origin",
    "Step",
    "ToolError",
    "Tools",
    "all_items",
    "ensure",
    "narration",
    "needed",
]
