"""The URNs of the last release: a resource whose URN changes is replaced in every stack that upgrades.

`python -m tests.examples.test_urns` writes them when a release is made.
"""

from pathlib import Path

import pytest

from tests.repository import STACK_FILES, relative
from tests.synth import synth_stack

_BASELINE = Path(__file__).parent / "urns"


def _baseline(stack_file: Path) -> Path:
    return _BASELINE / f"{stack_file.name.split('.')[1]}.txt"


_RELEASED = [path for path in STACK_FILES if _baseline(path).exists()]
"""Those of the last release; the others are new."""


@pytest.mark.parametrize("stack_file", _RELEASED, ids=relative)
def test_no_resource_is_renamed(stack_file: Path) -> None:
    """Every URN of the last release is still that of a resource, or an alias of one."""
    known = {urn for resource in synth_stack(stack_file) for urn in (resource.urn, *resource.aliases)}
    assert sorted(set(_baseline(stack_file).read_text(encoding="utf-8").splitlines()) - known) == []


if __name__ == "__main__":
    for file in STACK_FILES:
        urns = sorted(resource.urn for resource in synth_stack(file))
        _baseline(file).write_text("\n".join(urns) + "\n", encoding="utf-8")
