"""The programs, charts and manifests of a rehearsal: found on this machine, or built once from pinned Go
modules.

Binaries are never committed or downloaded: every build is verified by the hashes in `modules/*/go.sum`.
"""

from ebbtide.rehearsal.tools.errors import ToolError
from ebbtide.rehearsal.tools.find import Found, Origin, Tools, ensure
from ebbtide.rehearsal.tools.progress import narration
from ebbtide.rehearsal.tools.steps import Say, Step
from ebbtide.rehearsal.tools.table import ITEMS, needed

__all__ = ["ITEMS", "Found", "Origin", "Say", "Step", "ToolError", "Tools", "ensure", "narration", "needed"]
