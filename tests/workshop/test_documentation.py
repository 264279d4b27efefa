"""Documentation: its examples are run, and its facts compared with the code."""

import ast
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

import ebbtide
from docs.generate import NOTE, PAGES, declared_fields, field_limits
from docs.site.search import with_entries
from ebbtide.analysis.policy.check import policy_of
from ebbtide.analysis.policy.settings import KEY
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.rules.registry import RULES
from ebbtide.declaration.project.extends import DECLARATION, extended
from ebbtide.placement.derive import profile
from tests.commands import ebbtide as run_ebbtide
from tests.pages import BLOCKS, FILES, Block, commands, of_kind
from tests.repository import (
    ROOT,
    STACK_FILES,
    code_strings,
    declaration,
    makefile_targets,
    ran,
    relative,
    sources,
    syntax,
)

_PRODUCT = ("components", "ebbtide", "kueue-replay/kueue_replay", "rehearsal/ebbtide_rehearsal")
_OTHER_THAN_A_POOL = {"EveryPool"}
_OF_OTHERS = {
    *(".venv/bin/kfp", "uv", "az", "cd", "chromium", "chroot", "cp", "debootstrap", "docker", "echo"),
    *("export", "for", "gcloud", "git", "kill", "kubectl", "kubelogin", "mkdir", "python3", "sleep"),
    "tail",
}
"""Commands that a page may name and a test cannot try; those of pulumi are run in rehearsal/tests/engine."""

_PULUMI = {"config", "destroy", "install", "login", "new", "package", "preview", "stack", "up"}

_PATH = re.compile(r"`((?:components|ebbtide|examples|stacks|template|tests)/[\w./*-]*|docs/[\w-]+\.md)`")
"""A path of the repository as a page writes it."""

_TABLE = re.compile(r"\b(?:catalog|providers)/[\w/]+\.csv")
"""A table of the package as the source of a fact names it."""

_LIMITS = ROOT / "docs/limits.csv"


def test_every_block_is_of_a_kind() -> None:
    """A block says what it is, so that none escapes the tests below."""
    kinds = {"json", "mermaid", "python", "sh", "sql", "text", "toml", "yaml"}
    assert [str(block) for block in BLOCKS if block.kind not in kinds] == []


_PIPELINE = "docs/gitlab.md"
"""Its YAML is GitLab's; `tests/workshop/test_gitlab.py` checks it."""

_REPLAY = "docs/replay.md"
"""Its YAML is of a replay; `kueue-replay/tests/unit/test_command.py` checks it."""


@pytest.mark.parametrize(
    "block", [block for block in of_kind("yaml") if block.page not in (_PIPELINE, _REPLAY)], ids=str
)
def test_yaml_is_a_declaration(block: Block) -> None:
    """A stack's file that a page shows is accepted as it stands, a policy also alone, and a project's file
    names the environment that the page creates."""
    shown = yaml.safe_load(block.text)
    if "runtime" in shown:
        assert shown["runtime"]["options"]["virtualenv"] == ".venv"
        return
    config = shown["config"]
    assert config
    for key, value in config.items():
        if key == KEY:
            policy_of(value)
        else:
            assert key == DECLARATION
            declare(extended(value, ROOT).value, default_name="ebbtide-dev")


_ELSEWHERE: Final = {
    "docs/existing-cluster.md": "tests/packaging/test_pages_of_the_wheel.py",
    "docs/kubeflow-pipelines.md": "tests/examples/test_submitting.py",
    "docs/testing.md": "tests/packaging/test_pages_of_the_wheel.py",
}
"""Pages whose code needs a stack, a server or a project, with the test that runs it there."""


@pytest.mark.parametrize("block", [it for it in of_kind("python") if it.page not in _ELSEWHERE], ids=str)
def test_python_runs(block: Block, tmp_path: Path) -> None:
    """Code that a page shows runs where the profile of the dev stack lies."""
    dev = declare(declaration(ROOT / "Pulumi.dev.yaml"))
    (tmp_path / "profile.json").write_text(profile(dev).json(), encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{block.text}"
    ran(sys.executable, "-c", code, cwd=tmp_path)


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}


@pytest.mark.parametrize(
    "block", [block for kind in _READERS for block in of_kind(kind) if block.page != _PIPELINE], ids=str
)
def test_data_parses(block: Block) -> None:
    """Data that a page shows is read without an error."""
    assert _READERS[block.kind](block.text)


@cache
def _help(*command: str) -> str:
    done = run_ebbtide(*command, "--help")
    assert done.returncode == 0, done.stderr
    return done.stdout


def _check_make(words: list[str]) -> None:
    for word in words:
        name, _, value = word.partition("=")
        if name == "STACK":
            assert ROOT / f"Pulumi.{value}.yaml" in STACK_FILES
        elif name == word:
            assert word in makefile_targets()
        else:
            assert re.search(rf"\b{name}\b", (ROOT / "Makefile").read_text(encoding="utf-8"))


def _check_ebbtide(words: list[str]) -> None:
    length = 2 if words[:1] in (["prices"], ["trace"]) else 1  # a group of commands
    command = [word for word in words[:length] if not word.startswith("-")]
    text = _help(*command)
    for word in words[len(command) :]:
        if word == "--":
            return
        if word.startswith("--"):
            assert f"{word} " in text
        elif "/" in word and not re.search(
            r"=|://|^/|^\.\./", word
        ):  # NAME=SECRET/KEY, addresses, other directories
            assert (ROOT / word).exists()


def _check_pulumi(words: list[str]) -> None:
    """The traps of pulumi 3.259: it changes into --dir before it resolves a template's path, and removes a
    stack's file with the stack."""
    assert words[0] in _PULUMI
    if words[0] == "new" and "--dir" in words:
        assert words[1].startswith("$PWD/")
    if words[:2] == ["stack", "rm"]:
        assert "--preserve-config" in words


def _check_requirements(words: list[str]) -> None:
    """A page installs a checkout, a wheel of this version or a repository, with extras of the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wheel = f"-{ebbtide.__version__}-py3-none-any.whl"
    for text in words:
        if text in ("-e", f"./ebbtide_rehearsal{wheel}", f"./kueue_replay{wheel}"):
            continue
        match = re.fullmatch(r"([^\[]+)\[([\w,]+)\](| @ git\+file://\$PWD)", text)
        assert match is not None
        assert set(match[2].split(",")) <= project["optional-dependencies"].keys()
        assert match[1] in (".", f"./ebbtide{wheel}") or match[3]


def test_clones_are_of_the_pinned_versions() -> None:
    """A mirror of upstream has the tag that the components name."""
    clones = [
        words
        for _, command in commands()
        if (words := shlex.split(command))[:2] == ["git", "clone"] and words[2] != "."
    ]
    tags = {Path(words[-2]).name: words[words.index("--branch") + 1].removeprefix("v") for words in clones}
    assert tags == {name: PINS[name].version for name in ("pipelines", "argo-workflows")}


@pytest.mark.parametrize(("where", "command"), [*dict.fromkeys(commands())])
def test_commands_are_there(where: str, command: str) -> None:
    """A command that a page names is one that can be called, with those options, on those files."""
    match shlex.split(command):
        case ["make", *words]:
            _check_make(words)
        case [".venv/bin/ebbtide", *words]:
            _check_ebbtide(words)
        case [".venv/bin/python", "-m", "pip", "install", "-r", file]:
            directories = (Path(where).parent, "template/gke")
            assert any((ROOT / directory / file).is_file() for directory in directories), where
        case [".venv/bin/python" | "../jobs/.venv/bin/python", "-m", "pip", "install", *requirements]:
            _check_requirements(requirements)
        case [".venv/bin/python", "-m", "pytest", *paths]:
            assert all((ROOT / path).exists() for path in paths), where
        case [".venv/bin/python", "-m", module]:
            assert (ROOT / module.replace(".", "/")).with_suffix(".py").is_file(), where
        case [".venv/bin/python", file]:
            assert (ROOT / file).is_file(), where
        case ["pulumi", *words]:
            _check_pulumi(words)
        case [word, *_]:
            assert word in _OF_OTHERS, where
        case _:
            pytest.fail(where)


def _matches(pattern: re.Pattern[str]) -> list[tuple[Path, str]]:
    """Each match of a pattern in the documentation, with the page it is on."""
    return [(page, match) for page in FILES for match in pattern.findall(page.read_text(encoding="utf-8"))]


def test_links_lead_somewhere() -> None:
    """A link to a file of the repository has one at its end."""
    links = _matches(re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)"))
    assert [
        (relative(page), target)
        for page, target in links
        if "://" not in target and not (page.parent / target).exists()
    ] == []


def test_paths_exist() -> None:
    """A file or directory of the repository that a page names exists."""
    assert [
        (relative(page), name) for page, name in _matches(_PATH) if not any(ROOT.glob(name.rstrip("/")))
    ] == []


def test_tables_that_a_source_names_exist() -> None:
    """A table of the package that the source of a rule or of a limit names exists."""
    tables = {relative(path) for path in (ROOT / "ebbtide").rglob("*.csv")}
    code = (
        text
        for path in sources("ebbtide", "rehearsal/ebbtide_rehearsal")
        for _, text in code_strings(syntax(path))
    )
    named = [name for text in (*code, _LIMITS.read_text(encoding="utf-8")) for name in _TABLE.findall(text)]
    assert len(named) > 20
    assert [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in tables)] == []


def test_contributing_names_files_for_each_kind_of_change() -> None:
    """Each kind of change that is added has a section that names at least three files."""
    sections = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## ")
    named = {section.partition("\n")[0]: len(_PATH.findall(section)) for section in sections}
    added = {name: files for name, files in named.items() if name.startswith("Add ")}
    assert len(added) >= 6
    assert [name for name, files in added.items() if files < 3] == []


def test_commands_of_contributors_run_in_the_environment() -> None:
    """A command of Python's on the pages of contributors is that of `.venv`, which `make` has installed."""
    pages = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("AGENTS.md", "CONTRIBUTING.md"))
    assert re.findall(r"(?<!\.venv/bin/)\b(?:python|pytest|ruff) -\w+", pages) == []


def test_no_page_sets_the_path_of_python() -> None:
    """The package is installed: no page finds it through PYTHONPATH or the working directory."""
    assert _matches(re.compile(r"PYTHONPATH|-m ebbtide|(?<!-m )(?<!uv )pip install")) == []


def test_a_newcomer_reads_five_minutes() -> None:
    """The README has at most 120 lines; 200 words a minute, tables too, lead to a preview of one's own."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    way, preview, _ = text.partition("ebbtide preview mine")
    assert preview
    assert len(way.split()) / 200 < 5


_PAGE_WORDS: Final = 2_500
_ALL_WORDS: Final = 50_000
_MANUAL_WORDS: Final = 900
_FIRST: Final = re.compile(r"(Reference, from the code\. )?For [^:?]+: .+\?")


def _words(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").split())


def test_pages_are_short() -> None:
    """A page that is written by hand, all of them together, and an agent's manual have a limit of words."""
    written = [path for path in (ROOT / "docs").rglob("*.md") if not _is_generated(path)]
    assert [(relative(path), _words(path)) for path in written if _words(path) > _PAGE_WORDS] == []
    assert sum(map(_words, written)) <= _ALL_WORDS
    assert _words(ROOT / "skills/ebbtide/SKILL.md") <= _MANUAL_WORDS


def _is_generated(path: Path) -> bool:
    """A page of tables that are made of the code is reference, and has no limit."""
    return path.read_text(encoding="utf-8").startswith(NOTE)


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=relative)
def test_every_page_has_a_reader_and_a_question(path: Path) -> None:
    """The first line below the title says for whom the page is, and what it answers."""
    _, _, text = path.read_text(encoding="utf-8").partition("\n\n" if not _is_generated(path) else "\n\n# ")
    first = text.partition("\n\n")[2] if _is_generated(path) else text
    match = _FIRST.fullmatch(first.partition("\n")[0])
    assert match
    assert bool(match[1]) == _is_generated(path)


@pytest.mark.parametrize("page", PAGES)
def test_generated_pages_are_in_step(page: str) -> None:
    """A generated page says what its source says: else `make docs` was forgotten."""
    assert (ROOT / page).read_text(encoding="utf-8") == PAGES[page]()


def test_every_field_says_what_it_means() -> None:
    """No field of the declaration is without a meaning on its page, and so in editors."""
    assert [line for line in PAGES["docs/declaration.md"]().splitlines() if line.endswith("|  |")] == []


def test_the_site_has_every_page() -> None:
    """The site's contents name every page of docs/, and the list of pages links to each of them."""
    toc = yaml.safe_load((ROOT / "docs/site/toc.yml").read_text(encoding="utf-8"))
    listed = set(re.findall(r"(?:file|glob): (docs/[\w-]+)\b(?!/)", yaml.safe_dump(toc)))
    pages = {f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")}
    assert listed == pages
    links = re.findall(r"\]\(([\w-]+)\.md", (ROOT / "docs/README.md").read_text(encoding="utf-8"))
    assert {f"docs/{name}" for name in links} == pages - {"docs/README"}


_QUERIES: Final = {
    "my job is pending": "docs/following#why-a-workload-waits",
    "delete cluster": "docs/destroying",
    "quickstart": "docs/gke",
    "how do i get a gpu": "docs/daily-work",
}


def test_the_search_has_readers_words() -> None:
    """A reader's phrase is an entry of the index at the page or section that answers it, and of no other."""
    words: dict[str, list[str]] = yaml.safe_load((ROOT / "docs/site/search.yml").read_text(encoding="utf-8"))
    places = [(phrase, place) for place, phrases in words.items() for phrase in phrases]
    assert len(dict(places)) == len(places)
    assert {phrase: dict(places).get(phrase) for phrase in _QUERIES} == _QUERIES
    for place, phrases in words.items():
        name, _, section = place.partition("#")
        entries = ", ".join(f"!{phrase}" for phrase in phrases)
        text = with_entries(name, (ROOT / f"{name}.md").read_text(encoding="utf-8"))
        before, _, after = text.partition(f"```{{index}} {entries}\n```\n\n")
        assert after.startswith("#" if section else "\n"), place
        assert section or before.rstrip().splitlines()[-1].startswith("# "), place


def test_a_first_cluster_is_one_click_away() -> None:
    """Each kind of first cluster stands in the site's contents for itself, folded under no other."""
    toc = yaml.safe_load((ROOT / "docs/site/toc.yml").read_text(encoding="utf-8"))
    top = {entry.get("file") for tree in toc["subtrees"] for entry in tree["entries"]}
    assert {"docs/gke", "docs/aks", "docs/existing-cluster"} <= top


def test_decisions_are_listed() -> None:
    """Every decision is found from the list of them."""
    directory = ROOT / "docs" / "decisions"
    listed = set(
        re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (directory / "README.md").read_text(encoding="utf-8"))
    )
    assert listed == {path.name for path in directory.glob("[0-9]*.md")}


def test_limits_are_of_fields_and_checked_by_rules() -> None:
    """A row of the table of limits has a document, its date or version, a limit, and rules that exist."""
    known = {rule.id for rule in RULES} | {"type"}
    for row in field_limits():
        assert all(row[column] for column in ("field", "document", "date", "limit")), row
        assert row["cloud"] in ("", "gke", "aks")
        assert set(row["rule"].split()) <= known, row


def test_every_open_field_has_a_row_of_limits() -> None:
    """A field whose type lists neither its values nor fields of its own names the document that was read."""
    rows = {row["field"] for row in field_limits()}
    assert [field for field, is_open in declared_fields().items() if is_open and field not in rows] == []


def test_every_form_of_a_pool_is_in_the_table() -> None:
    """Classes named for a pool are forms of the table in docs/architecture.md, and it names no others."""
    code = sources(*_PRODUCT)
    pools = {
        node.name
        for path in code
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.ClassDef)
        and re.fullmatch(r"\w*Pool|Pool(Profile|Report|Series|Status)|NodePoolSize", node.name)
    }
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("### Forms of a pool")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w*Pool\w*)`", table)) == pools - _OTHER_THAN_A_POOL
