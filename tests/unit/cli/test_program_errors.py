"""Errors of a user's own program: file and line, through the real command line."""

from pathlib import Path

import pytest

from tests.commands import ebbtide


def _preview(cwd: Path, *args: str) -> str:
    """Standard error of a preview that fails, run in a directory."""
    done = ebbtide("preview", *args, cwd=cwd)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def _project(directory: Path, main: str, **modules: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (directory / "Pulumi.dev.yaml").write_text("config: {}\n")
    (directory / "__main__.py").write_text(main)
    for name, text in modules.items():
        (directory / f"{name}.py").write_text(text)
    return directory


_NESTED = """
def outer():
    def inner():
        return {}["x"]
    return inner()

outer()
"""

_IN_APPLY = """
import pulumi

def fail(value):
    return {}[value]

pulumi.Output.from_input("x").apply(fail)
"""


@pytest.mark.parametrize(
    ("main", "position"),
    [
        ("import json\n\n{}['x']\n", "(__main__.py, line 3)"),
        (_NESTED, "(__main__.py, line 4)"),
        (_IN_APPLY, "(__main__.py, line 5)"),
        ("import part\n\npart.make({})\n", "(part.py, line 2)"),
        ("import json\nimport part\n\npart.load(json.loads)\n", "(part.py, line 5)"),
        ("def f(:\n", "(__main__.py, line 1)"),
        ("import broken\n", "(broken.py, line 2)"),
    ],
    ids=["main", "nested function", "apply", "module", "library", "syntax", "syntax of a module"],
)
def test_an_exception_has_file_and_line_in_the_default_case(tmp_path: Path, main: str, position: str) -> None:
    """Without --cwd, an error names the deepest line of the project's own files."""
    project = _project(
        tmp_path,
        main,
        part="def make(d):\n    return d['x']\n\ndef load(loads):\n    return loads('{')\n",
        broken="\ndef f(:\n",
    )
    assert _preview(project).strip().endswith(position)


def test_a_program_is_found_and_named_from_elsewhere(tmp_path: Path) -> None:
    """A relative --cwd and a directory below the project give the same file and line."""
    project = _project(tmp_path / "shop", "{}['x']\n")
    (project / "below").mkdir()
    assert _preview(tmp_path, "--cwd", "shop") == "KeyError: 'x' (__main__.py, line 1)\n"
    assert _preview(project / "below") == "KeyError: 'x' (__main__.py, line 1)\n"


def test_a_program_in_a_directory_of_its_own(tmp_path: Path) -> None:
    """With `main:` in Pulumi.yaml, the file is relative to that directory."""
    project = _project(tmp_path, "")
    (project / "Pulumi.yaml").write_text("name: shop\nruntime: python\nmain: src\n")
    (project / "src").mkdir()
    (project / "src" / "__main__.py").write_text("\n{}['x']\n")
    assert _preview(project) == "KeyError: 'x' (__main__.py, line 2)\n"


_POOL = """\
from ebbtide.components.gke import NodePoolArgs
from ebbtide.declaration.model.declare import check_pool
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.site import Site

pool = Pool(name="cpu", machine="n1-standrad-8", nodes={"max": 2})
site = Site(cloud="gke", location="us-central1-a")
"""


@pytest.mark.parametrize(
    "line", ["check_pool(pool, site)", "NodePoolArgs(pool=pool, site=site, cluster='c', project='p')"]
)
def test_a_pool_made_in_python_is_refused_at_its_line(tmp_path: Path, line: str) -> None:
    """A fault of a pool without a declaration has the program's line."""
    output = _preview(_project(tmp_path, _POOL + line))
    assert output.startswith(
        "The pool cpu has 1 error.\n\n__main__.py:8: machine\n  No machine type n1-standrad-8"
    )


def test_a_wrong_argument_is_reported_in_the_declarations_words(tmp_path: Path) -> None:
    """An error of a constructor has the program's line, and none of pydantic's words."""
    output = _preview(
        _project(tmp_path, "from ebbtide.declaration.model.pool import Nodes\n\nNodes(max='four', mini=1)\n")
    )
    assert output == (
        "Nodes(…) has 2 errors.\n\n"
        "__main__.py:3: max\n"
        '  max is the text "four"; expected a whole number. The declaration cannot be read.\n'
        "  Write a whole number here, or omit it.\n\n"
        "__main__.py:3: mini\n"
        "  There is no mini here; did you mean min? The key would have no effect.\n"
        "  Write min.\n"
    )
