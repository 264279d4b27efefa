"""The tests that a change reaches: `make check`."""

from pathlib import Path

import pytest

from tests import reached
from tests.repository import commit_all, git

_FILES = {
    "ebbtide/base.py": "",
    "ebbtide/user.py": "from ebbtide import base",
    "ebbtide/data/prices.csv": "",
    "ebbtide/prices.py": 'FILE = "data/prices.csv"',
    "tests/test_base.py": "from ebbtide import base",
    "tests/test_both.py": "from ebbtide import base, prices, user",
    "tests/test_user.py": "from ebbtide import user",
    "tests/test_engine.py": "import pytest\nfrom ebbtide import base\npytestmark = pytest.mark.engine",
    "tests/some/conftest.py": "",
    "tests/some/test_some.py": "",
    "tests/workshop/test_pages.py": "",
    "README.md": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A clone of a repository, which has no change."""
    for name, text in _FILES.items():
        path = tmp_path / "first" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for package in ("ebbtide", "tests"):
        (tmp_path / "first" / package / "__init__.py").touch()
    commit_all(tmp_path / "first")
    git(tmp_path, "clone", "--quiet", "first", "clone")
    return tmp_path / "clone"


def test_what_has_changed(root: Path) -> None:
    """A clone has no change; then it has what is committed here, what is not, and what is new."""
    base, changed = reached.changed_since(root)
    assert changed == []
    (root / "ebbtide/base.py").write_text("A = 1")
    git(root, "commit", "--quiet", "--all", "--message", "mine")
    (root / "ebbtide/user.py").write_text("B = 1")
    (root / "ebbtide/new.py").touch()
    changed = ["ebbtide/base.py", "ebbtide/new.py", "ebbtide/user.py"]
    assert reached.changed_since(root) == (base, changed)


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        (
            "ebbtide/base.py",
            ["tests/test_base.py", "tests/test_engine.py", "tests/test_both.py", "tests/test_user.py"],
        ),
        ("ebbtide/user.py", ["tests/test_user.py", "tests/test_both.py"]),
        ("ebbtide/data/prices.csv", ["tests/test_both.py"]),
        ("tests/some/conftest.py", ["tests/some/test_some.py"]),
        ("tests/test_user.py", ["tests/test_user.py"]),
        ("README.md", ["tests/workshop/test_pages.py"]),
    ],
)
def test_the_nearest_tests_first(root: Path, file: str, tests: list[str]) -> None:
    """Tests that import a module directly come first, and of these those that import the least."""
    graph = reached.dependents_in(root)
    assert reached.nearest(graph, reached.modules_of(root, file, graph.keys())) == tests


def test_what_is_not_run_is_said(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests further away are counted, and those of `make rehearse` named; without a change nothing is run."""
    monkeypatch.setattr(reached, "ROOT", root)
    monkeypatch.setattr(reached, "_MOST", 2)
    assert reached.main(["--collect-only"]) == 0
    assert "Nothing has changed since" in capsys.readouterr().out
    (root / "ebbtide/base.py").write_text("A = 1")
    assert reached.main(["--collect-only"]) == 0
    printed = capsys.readouterr().out
    assert "1 files have changed since" in printed
    assert "and reach 4 test files." in printed
    assert "Not run: 1 of these, further away" in printed
    assert (
        "Not run: 1 with the real engine or a real Kubernetes (`make rehearse`): tests/test_engine.py"
        in printed
    )
