"""The review that docs/review.md shows is the one that the command prints."""

import copy
import io

from rich.console import Console

from ebbtide.analysis.review.render_review import render
from tests.declarations import pool
from tests.pages import output
from tests.repository import ROOT, declaration
from tests.synth import reviewed

DEV = ROOT / "Pulumi.dev.yaml"


def test_the_page_shows_the_review_of_its_changes() -> None:
    """The dev stack, with a larger machine and fewer GPU nodes, in 80 columns."""
    changed = copy.deepcopy(declaration(DEV))
    pool(changed, "cpu-spot")["machine"] = "n2-standard-16"
    pool(changed, "t4-spot")["nodes"] = {"max": 2}
    screen = io.StringIO()
    render(reviewed(declaration(DEV), changed, stack="dev"), Console(file=screen, width=80))
    assert [screen.getvalue()] == output("docs/review.md", "WARN ebbtide/dev")
