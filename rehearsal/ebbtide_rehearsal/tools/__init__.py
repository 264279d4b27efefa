"""The programs, charts and manifests of a rehearsal: found on this machine, or built once from pinned Go
modules.

Binaries are never committed or downloaded: every build is verified by the hashes in `modules/*/go.sum`.
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
