"""`make check`: run the tests that a change reaches, nearest first, and say which were not run.

The change is what differs from the merge base with the upstream branch. It reaches the test files that import
a changed module, through others or not. Other files belong to the modules that name them, or their directory.
"""

import json
import re
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.repository import ROOT

_MOST: Final = 10
"""Test files of a run, which take about half a minute on two cores."""
_REAL: Final = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(engine|rehearsal)\b", flags=re.MULTILINE)
"""Test files that `make rehearse` runs."""
_PACKAGES: Final = ("ebbtide", "components", "stacks", "rehearsal", "kueue-replay", "tests")


def _git(root: Path, *arguments: str) -> list[str]:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_since(root: Path) -> tuple[str, list[str]]:
    """Return the commit that a change is compared with, and the files that differ from it or are new."""
    upstream = (_git(root, "merge-base", "HEAD", branch) for branch in ("@{upstream}", "origin/main"))
    base = next((commits[0] for commits in upstream if commits), "HEAD")
    new = _git(root, "ls-files", "--others", "--exclude-standard")
    return base[:8], sorted({*_git(root, "diff", "--name-only", base), *new})


def dependents_in(root: Path) -> dict[str, list[str]]:
    """Return the modules that import each module, as ruff reads them."""
    command = [
        Path(sys.executable).with_name("ruff"),
        "analyze",
        "graph",
        "--quiet",
        "--direction",
        "dependents",
    ]
    text = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return json.loads(text)


def is_test(name: str) -> bool:
    """Tell if a file has tests."""
    return Path(name).name.startswith("test_")


def modules_of(root: Path, file: str, modules: Collection[str]) -> list[str]:
    """Return the modules that a file is part of: itself and, of a conftest.py, the tests below it; of another
    file, those nearby, or else anywhere, that name it or its directory."""
    path = Path(file)
    if file in modules:
        below = f"{path.parent}/".removeprefix("./")
        tests = [name for name in modules if is_test(name) and name.startswith(below)]
        return [file, *(tests if path.name == "conftest.py" else [])]
    texts = {name: (root / name).read_text(encoding="utf-8") for name in modules}
    near = [name for name in modules if path.parent.parent in Path(name).parents]
    words = (path.name, f'"{path.parent.name}"', f'"{path.stem}"')
    named = (
        [name for name in scope if any(word in texts[name] for word in words)] for scope in (near, modules)
    )
    found = next(filter(None, named), list[str]())
    if path.parts[0] not in _PACKAGES:
        found += [name for name in modules if name.startswith("tests/workshop/") and is_test(name)]
    return found


def distances(graph: Mapping[str, Iterable[str]], start: Iterable[str]) -> dict[str, int]:
    """Return everything that is reached in a graph, with the number of its edges on the way."""
    reached = dict.fromkeys(start, 0)
    pending = deque(reached)
    while pending:
        name = pending.popleft()
        for other in graph.get(name, ()):
            if other not in reached:
                reached[other] = reached[name] + 1
                pending.append(other)
    return reached


def nearest(graph: Mapping[str, Iterable[str]], start: Iterable[str]) -> list[str]:
    """Return the test files that are reached: those with the fewest imports on the way first, and of these
    those that import the least."""
    imports: dict[str, list[str]] = {}
    for name, users in graph.items():
        for user in users:
            imports.setdefault(user, []).append(name)
    reached = {name: steps for name, steps in distances(graph, start).items() if is_test(name)}
    return sorted(reached, key=lambda name: (reached[name], len(distances(imports, [name])), name))


def _not_run(left: list[str], real: list[str]) -> Iterator[str]:
    if left:
        yield f"Not run: {len(left)} of these, further away (`make test`, `make test-rehearsal`)."
    if real:
        names = f"{', '.join(real[:3])}{' …' if len(real) > 3 else ''}"
        yield f"Not run: {len(real)} with the real engine or a real Kubernetes (`make rehearse`): {names}"


def main(arguments: list[str]) -> int:
    """Run the tests with arguments of pytest, and return its exit status."""
    base, changed = changed_since(ROOT)
    if not changed:
        print(f"Nothing has changed since {base}: no test was run.")  # noqa: T201
        return 0
    graph = dependents_in(ROOT)
    reached = nearest(graph, [name for file in changed for name in modules_of(ROOT, file, graph.keys())])
    real = [name for name in reached if _REAL.search((ROOT / name).read_text(encoding="utf-8"))]
    tests = [name for name in reached if name not in real]
    status = 0
    if tests:
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not engine and not rehearsal", *arguments]
        workers = ["-n", "auto"] if len(tests) > 2 else []
        status = subprocess.run([*command, *workers, *tests[:_MOST]], cwd=ROOT, check=False).returncode
    print(f"{len(changed)} files have changed since {base}, and reach {len(reached)} test files.")  # noqa: T201
    for line in _not_run(tests[_MOST:], real):
        print(line)  # noqa: T201
    return 0 if status == 5 else status  # 5: no test was selected


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
