"""The one way in which tests run the program: the repository's own, recorded, from a declaration."""

import json
from pathlib import Path
from typing import Any

from ebbtide.recording.record import record
from ebbtide.recording.recording import Recording

ROOT = Path(__file__).parent.parent


def synth(declaration: dict[str, Any], *, stack: str = "test") -> Recording:
    """What `__main__.py` would create for a declaration, written as YAML has it."""
    config = {"ebbtide:cluster": json.dumps(declaration)}
    return record(ROOT, project="ebbtide", stack=stack, config=config)
