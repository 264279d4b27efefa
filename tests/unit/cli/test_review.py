"""`ebbtide review` over a git history, an exported state and another stack file."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from ebbtide.analysis.markdown import LIMIT
from ebbtide.analysis.review import markdown
from ebbtide.analysis.review.review_document import AnyReview, FailedReview
from ebbtide.cli.entry_point import app
from ebbtide.declaration.catalog.amounts import HOURS_PER_MONTH
from ebbtide.declaration.project.diagnostics import FaultReport
from ebbtide.values.documents import json_schema
from tests.html_pages import parsed, text_of
from tests.repository import commit_all, git

PROGRAM = """
import pulumi
import pulumi_gcp as gcp

config = pulumi.Config()
labels = {"p": config.require_secret("password"), "team": config.get("team") or "vision"}
gcp.storage.Bucket("data", name="data", location=config.get("place") or "US", labels=labels)
"""
POOL = """
import pulumi_gcp as gcp

machine = {"machineType": "n2-standard-8"}
gcp.container.NodePool("cpu", cluster="train", location="us-central1-a", node_count=1, node_config=machine)
"""
SECURE = "v1:AAAAAAAAAAAAAAAA:BBBBBBBBBBBBBBBBBBBBBBBB"
DEV = f"config:\n  shop:password:\n    secure: {SECURE}\n"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project in a directory of a git repository, with a commit on main."""
    project = tmp_path / "infrastructure"
    project.mkdir()
    (project / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (project / "Pulumi.dev.yaml").write_text(DEV)
    (project / "__main__.py").write_text(PROGRAM)
    commit_all(tmp_path)
    yield project
    # Nothing of a review stays in the repository, however it ends.
    assert len(git(tmp_path, "worktree", "list").splitlines()) == 1


def _review(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["review", "dev", "--cwd", str(project), *arguments])


def _refused(result: Result) -> str:
    """The one sentence of a wrong call."""
    assert result.exit_code == 2
    assert result.stdout == ""
    return " ".join(result.stderr.split())


def test_uncommitted_changes_are_the_new_version(project: Path) -> None:
    """And repeated reviews are byte-identical, without the secret."""
    (project / "Pulumi.dev.yaml").write_text(f"{DEV}  shop:place: EU\n")
    first, second = (_review(project, "--against", "main", "--format", "json") for _ in range(2))
    assert first.exit_code == 1
    assert first.stdout == second.stdout
    document = json.loads(first.stdout)
    (change,) = document["difference"]["changes"]
    assert (change["name"], change["action"]) == ("data", "replace")
    assert change["fields"] == [{"path": "location", "old": "US", "new": "EU", "replaces": True}]
    assert document["verdict"] == "fail"
    assert [item["rule"] for item in document["findings"]] == ["data-kept"]
    assert "encrypted-in" not in first.stdout


_BASE = """\
config:
  ebbtide:cluster:
    owner: vision
    cloud: {kind: gke, project: acme-ml, location: us-central1-a}
    pools:
      - {name: system, role: system, machine: e2-standard-4, nodes: {max: 3}}
      - {name: t4-spot, machine: n2-standard-8, nodes: {max: 4}}
"""
_PR = """\
config:
  ebbtide:cluster:
    extends: Pulumi.dev.yaml
    pools: [{name: t4-spot, nodes: {max: 1}}]
"""
_LOST = (
    "Pulumi.pr.yaml extends this declaration, and is invalid with it. Pulumi.pr.yaml:4:13: pools[2]: "
    "Pulumi.dev.yaml has no pool t4-spot; did you mean t4-spots? As a new pool, it is incomplete: The pool "
    "has no machine type. Write the name of a pool there (system, t4-spots), or the fields of a new one."
)


@pytest.fixture
def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose stack pr changes a pool of its stack dev, and a stack of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(_BASE)
    (tmp_path / "Pulumi.pr.yaml").write_text(_PR)
    (tmp_path / "Pulumi.other.yaml").write_text(_BASE.replace("t4-spot", "bad name"))
    (tmp_path / "__main__.py").write_text("from components import program\n\nprogram.configured()\n")
    return tmp_path


@pytest.mark.parametrize("command", ["preview", "review"])
def test_stacks_that_extend_the_file_are_checked(extended: Path, command: str) -> None:
    """A pool that another stack changes is missed there, where the base has renamed it; a stack without this
    base is none of its concern."""
    arguments = [command, "dev", "--format", "json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    (extended / "Pulumi.dev.yaml").write_text(_BASE.replace("t4-spot", "t4-spots"))
    done = CliRunner().invoke(app, arguments)
    document = json.loads(done.stdout)
    preview = document["preview"] if command == "review" else document
    errors = [item["text"] for item in preview["warnings"] if item["severity"] == "error"]
    assert (done.exit_code, errors) == (1, [_LOST])
    assert document.get("verdict", "fail") == "fail"


def test_stacks_that_share_a_file_are_checked(extended: Path) -> None:
    """A base that is not a stack of its own is checked with each stack that extends it."""
    (extended / "common.yaml").write_text(_BASE.replace("t4-spot", "t4-spots"))
    for stack in ("dev", "pr"):
        text = _PR.replace("Pulumi.dev", "common")
        (extended / f"Pulumi.{stack}.yaml").write_text(
            text if stack == "pr" else text.partition("    pools")[0]
        )
    done = CliRunner().invoke(app, ["review", "dev", "--format", "markdown"])
    assert done.exit_code == 1
    assert "#### 1 message\n\n- error: Pulumi.pr.yaml extends this declaration" in done.stdout


def test_the_program_of_the_ref_is_recorded(project: Path) -> None:
    """The ref's program runs with its own modules, and HEAD does not change."""
    (project / "__main__.py").write_text(PROGRAM + "from names import NAME\nLABEL = NAME\n")
    (project / "names.py").write_text("NAME = 'old'\n")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "second")
    more = 'gcp.storage.Bucket("more", name=NAME, location="US")\n'
    (project / "__main__.py").write_text(PROGRAM + "from names import NAME\n" + more)
    (project / "names.py").write_text("NAME = 'new'\n")
    result = _review(project, "--against", "HEAD~1")
    assert result.exit_code == 0
    assert "PASS shop/dev against HEAD~1: 1 to create" in result.stdout
    assert "+ gcp.storage.Bucket  more" in result.stdout


def test_a_stack_that_did_not_exist(project: Path) -> None:
    """Everything is created, and the review says so."""
    (project / "Pulumi.new.yaml").write_text(DEV)
    result = CliRunner().invoke(app, ["review", "new", "--cwd", str(project), "--against", "main"])
    assert result.exit_code == 0
    assert "Stack new does not exist at main: everything is created." in " ".join(result.stdout.split())


def test_another_stack_file(project: Path, tmp_path: Path) -> None:
    """Another stack file is the earlier version of the same stack."""
    other = tmp_path / "other.yaml"
    other.write_text(f"{DEV}  shop:team: audio\n")
    result = _review(project, "--against", str(other))
    assert result.exit_code == 0
    assert "labels.team: audio -> vision" in result.stdout


def test_each_version_has_its_own_prices(project: Path) -> None:
    """A change of the prices alone changes the cost, per hour and month; a price file of the earlier version
    that is invalid is named with the version, and does not decide."""
    (project / "__main__.py").write_text(POOL)
    (project / "Pulumi.dev.yaml").write_text("config:\n  ebbtide:prices: prices.csv\n")
    row = "cloud,region,item,usd_per_hour_on_demand,as_of\ngke,us-central1,n2-standard-8,{},2026-11\n"
    prices = project / "prices.csv"
    for price in ("a lot", "3", "2"):
        prices.write_text(row.format(price))
        commit_all(project.parent)
    prices.write_text(row.format("1"))
    result = _review(project, "--against", "main", "--format", "json")
    document = json.loads(result.stdout)
    after, before = document["preview"]["cost"], document["difference"]["cost_before"]
    assert before["maximum"]["usd"] - after["maximum"]["usd"] == pytest.approx(1)
    for amount in (after["maximum"], before["maximum"], after["charges"][0]["maximum"]):
        assert amount["usd_per_month"] == pytest.approx(amount["usd"] * HOURS_PER_MONTH, abs=0.01)
    assert document["difference"]["changes"] == []
    result = _review(project, "--against", "main~2", "--format", "json")
    assert result.exit_code == 0
    (finding,) = [item for item in json.loads(result.stdout)["findings"] if "invalid" in item["message"]]
    assert finding["message"].startswith("At main~2, the prices are invalid: ")
    assert "usd_per_hour_on_demand is a lot" in finding["message"]


def test_a_lower_price_permits_nothing(project: Path) -> None:
    """A change of the stack that lowers a price is held to its limit at the prices before it; the prices
    alone are a warning of what they permit."""
    program, prices = project / "__main__.py", project / "prices.csv"
    (project / "Pulumi.dev.yaml").write_text(
        "config:\n  ebbtide:prices: prices.csv\n  ebbtide:policy: {limits: {maximumUsdPerHour: 5}}\n"
    )
    row = "cloud,region,item,usd_per_hour_on_demand,as_of\ngke,us-central1,n2-standard-8,{},2026-11\n"
    more = POOL.replace("node_count=1", "node_count=2")
    for price, new, status in (("100", more, 1), ("90", POOL, 0), ("1", more, 0)):
        program.write_text(POOL)
        prices.write_text(row.format(price))
        commit_all(project.parent)
        program.write_text(new)
        prices.write_text(row.format("0.01"))
        result = _review(project, "--against", "main")
        text = " ".join(result.stdout.split())
        assert result.exit_code == status, text
        assert ("prices before this change decide" in text) is bool(status)
        assert ("permits what fails maximum-cost today" in text) is (new == POOL)


def test_a_policy_alone_can_be_reviewed(project: Path) -> None:
    """If the base violates its own policy, a change of the policy alone warns of what it loosens, and a
    change of the stack besides is refused."""
    (project / "__main__.py").write_text(POOL)
    for limit in (0.01, 60):
        policy = f"  ebbtide:policy: {{limits: {{maximumUsdPerHour: {limit}}}}}\n"
        (project / "Pulumi.dev.yaml").write_text(DEV + policy)
        commit_all(project.parent)
    result = _review(project, "--against", "main~1")
    text = " ".join(result.stdout.split())
    assert result.exit_code == 0, text
    assert text.startswith("WARN shop/dev against main~1: no change")
    assert f"The change by {git(project, 'log', '-1', '--format=%an').strip()} loosens the policy: " in text
    assert "limits.maximumUsdPerHour is 60.0, and was 0.01. Nothing else changes:" in text
    (project / "__main__.py").write_text(POOL.replace("node_count=1", "node_count=2"))
    result = _review(project, "--against", "main~1")
    assert result.exit_code == 1
    assert "before this change decide" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("location", "verdict", "message"),
    [
        ("US", "PASS", "no change"),
        ("ASIA", "FAIL", "location: ASIA -> US forces replacement"),
    ],
)
def test_an_exported_state(project: Path, tmp_path: Path, location: str, verdict: str, message: str) -> None:
    """Inputs of the state are compared; an encrypted value is neither a change nor shown."""
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:abc"}
    labels = {"p": secret, "team": "vision"}
    filled = {"__defaults": ["forceDestroy"], "forceDestroy": False}
    bucket = {
        "urn": "urn:pulumi:dev::shop::gcp:storage/bucket:Bucket::data",
        "type": "gcp:storage/bucket:Bucket",
        "custom": True,
        "protect": True,
        "inputs": {**filled, "name": "data", "location": location, "labels": labels},
    }
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"version": 3, "deployment": {"resources": [bucket]}}))
    result = _review(project, "--against", str(state))
    assert result.stdout.startswith(f"{verdict} shop/dev against")
    assert message in " ".join(result.stdout.split())
    assert "v1:abc" not in result.stdout


@pytest.mark.parametrize(
    ("against", "message"),
    [
        ("no-such-branch", "There is no git ref no-such-branch, and no file of that name."),
        ("--help-me", "There is no git ref --help-me"),
        ("state.json", "There is no file state.json, named by --against."),
        ("Pulumi.old.yaml", "There is no file Pulumi.old.yaml, named by --against."),
    ],
)
def test_no_such_version(project: Path, against: str, message: str) -> None:
    """One clear sentence."""
    assert message in _refused(_review(project, f"--against={against}"))


def test_a_program_that_failed_at_the_ref(project: Path) -> None:
    """The error says which version it is of."""
    (project / "__main__.py").write_text("raise ValueError('broken then')\n")
    git(project, "commit", "--all", "--quiet", "--message", "broken")
    (project / "__main__.py").write_text(PROGRAM)
    message = _refused(_review(project, "--against", "HEAD"))
    assert "At HEAD, the program cannot be recorded, so that nothing was compared:" in message
    assert "broken then" in message


@pytest.mark.parametrize(
    ("broken", "start"),
    [
        (_BASE.replace("e2-standard-4", "e2-standard-5"), "At HEAD, the program cannot be recorded"),
        (f"{_BASE}  - ]\n", "At HEAD, the stack's files are invalid"),
    ],
)
def test_a_declaration_that_is_invalid_at_the_ref(extended: Path, broken: str, start: str) -> None:
    """The answer is about the ref, with neither a position nor a fault of the file under review."""
    (extended / "Pulumi.dev.yaml").write_text(broken)
    commit_all(extended)
    (extended / "Pulumi.dev.yaml").write_text(_BASE)
    done = CliRunner().invoke(app, ["review", "dev", "--against", "HEAD", "--format", "json"])
    (error,) = json.loads(done.stdout)["errors"]
    assert error["message"].startswith(start)
    assert (error["file"], error["line"], error["rule"]) == (None, None, "against")
    assert " ".join(done.stderr.split()).startswith(start)


def test_no_repository_and_no_git(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files can be compared without."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / ".git").rename(tmp_path / "hidden")
    message = _refused(_review(project, "--against", "main"))
    assert "is not in a git repository, so --against can only name a file" in message
    monkeypatch.setenv("PATH", "")
    message = _refused(_review(project, "--against", "main"))
    assert message == "--against with a git ref needs git, which is not installed."
    monkeypatch.undo()
    (tmp_path / "hidden").rename(tmp_path / ".git")


def test_a_broken_mandatory_rule(project: Path) -> None:
    """Exit status 1, in each format with the finding in it."""
    exception = "{rule: lifetime, resource: stack, reason: unused}"
    policy = f"  ebbtide:policy: {{levels: {{current-exceptions: mandatory}}, exceptions: [{exception}]}}\n"
    (project / "Pulumi.dev.yaml").write_text(DEV + policy)
    for format_, start in (("text", "FAIL shop/dev"), ("markdown", "#"), ("html", "<!"), ("json", "{")):
        result = _review(project, "--format", format_)
        assert result.exit_code == 1
        assert result.stdout.lower().startswith(start.lower())
        assert "matches no violation" in result.stdout


def test_a_change_cannot_remove_the_policy_that_refuses_it(project: Path) -> None:
    """The policy at the ref decides, in another stack file too; if it is invalid there, the review says so,
    and the change's own decides."""
    nodes = "import pulumi\nnodes = pulumi.Config().get_int('nodes')\n"
    (project / "__main__.py").write_text(nodes + POOL.replace("node_count=1", "node_count=nodes"))
    config = project / "Pulumi.dev.yaml"
    config.write_text(f"{DEV}  ebbtide:policy: {{levels: {{current-exceptions: mandatory}}}}\n")
    commit_all(project.parent)
    exception = "{rule: lifetime, resource: stack, reason: unused}"
    for policy in (f"levels: {{current-exceptions: disabled}}, exceptions: [{exception}]", "levels: {}"):
        config.write_text(f"{DEV}  shop:nodes: 2\n  ebbtide:policy: {{{policy}}}\n")
        (project / "old.yaml").write_text(git(project, "show", "HEAD:./Pulumi.dev.yaml"))
        for against in ("main", str(project / "old.yaml")):
            result = _review(project, "--against", against)
            assert result.exit_code == ("exceptions" in policy.replace("current-exceptions", ""))
            assert "The change loosens the policy: current-exceptions is " in " ".join(result.stdout.split())
    (project / "old.yaml").write_text(f"{DEV}  ebbtide:policy: {{levels: {{no-such: mandatory}}}}\n")
    for level, status in (("advisory", 0), ("mandatory", 1)):
        broken = f"levels: {{current-exceptions: {level}}}, exceptions: [{exception}]"
        config.write_text(f"{DEV}  shop:nodes: 2\n  ebbtide:policy: {{{broken}}}\n")
        result = _review(project, "--against", str(project / "old.yaml"))
        assert result.exit_code == status
        assert "the policy is invalid: levels.no-such" in " ".join(result.stdout.split())


def test_without_an_earlier_version(project: Path, tmp_path: Path) -> None:
    """Everything but the difference, also in a file."""
    out = tmp_path / "review.txt"
    result = _review(project, "--out", str(out))
    assert (result.exit_code, result.stdout) == (0, "")
    assert out.read_text().startswith("PASS shop/dev: 1 resource to create")


@pytest.mark.parametrize("format_", ["text", "markdown", "html", "json"])
def test_errors_replace_an_earlier_review(project: Path, tmp_path: Path, format_: str) -> None:
    """The errors of an invalid declaration are a failed review in each format, with file and line."""
    (project / "Pulumi.dev.yaml").write_text(
        "config:\n  ebbtide:cluster:\n    owner: us\n"
        "    cloud: {kind: gke, project: acme-ml, location: mars}\n"
        "    pools: [{name: system, role: system, machine: e2-small, nodes: {max: -3}}]\n"
    )
    (project / "__main__.py").write_text("from components import program\n\nprogram.configured()\n")
    out = tmp_path / "review"
    out.write_text("PASS")
    result = _review(project, "--format", format_, "--out", str(out))
    assert (result.exit_code, result.stdout) == (2, "")
    text = out.read_text()
    assert "fail" in text.lower()
    assert "PASS" not in text
    if format_ == "json":
        document = json.loads(text)
        jsonschema.validate(document, json_schema(AnyReview))
        assert (document["stack"], document["verdict"]) == ("dev", "fail")
        assert [error["line"] for error in document["errors"]] == [4, 5]
    elif format_ == "html":
        shown = text_of(parsed(text))
        assert "Pulumi.dev.yaml:4:" in shown
        assert "nodes.max" in shown
    else:
        text = text.replace("\n", "")  # a long path is wrapped
        assert "Pulumi.dev.yaml:4:" in text
        assert "Pulumi.dev.yaml:5:" in text


def test_errors_on_standard_output(project: Path) -> None:
    """A failed review in Markdown is complete on standard output, and text is not repeated there."""
    (project / "Pulumi.dev.yaml").write_text("config: [\n")
    assert _review(project, "--format", "markdown").stdout.startswith("### ❌ Review of dev: fail, 1 error")
    assert _review(project).stdout == ""


def test_many_errors_fit_into_a_comment() -> None:
    """The Markdown of a thousand errors has the length of a comment, with the number of the omitted ones."""
    error = FaultReport(file="Pulumi.dev.yaml", line=7, message="wrong " * 50, rule="value-type")
    text = markdown.render(FailedReview(stack="dev", errors=(error,) * 1000))
    assert len(text) <= LIMIT
    assert re.search(r"_\d+ errors not shown", text)
