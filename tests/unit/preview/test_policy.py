"""The policy in a stack's file, and findings in the terminal."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ebbtide.analysis.policy.check import RULES, policy_of, policy_schema
from ebbtide.analysis.policy.settings import PolicyError
from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.render_preview import render
from ebbtide.analysis.preview.stack_files import StackFileError, StackFiles, read_stack
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import Plain
from ebbtide.cli.error_output import explain
from tests.repository import ROOT
from tests.synth import synth_stack


def _stack(directory: Path, config: str) -> StackFiles:
    (directory / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (directory / "Pulumi.dev.yaml").write_text(f"config:\n{config}")
    return read_stack(directory, "dev")


def test_a_stack_without_a_policy_has_the_default_one(tmp_path: Path) -> None:
    """Nothing needs to be written."""
    assert _stack(tmp_path, "  a: b\n").policy() == policy_of(None)


def test_errors_of_a_policy_have_their_line(tmp_path: Path) -> None:
    """File, line and column of the part that is wrong."""
    files = _stack(tmp_path, "  ebbtide:policy:\n    levels:\n      spot-sistem: advisory\n")
    with pytest.raises(PolicyError) as caught:
        files.policy()
    (error,) = explain(caught.value, files.source).report.errors
    assert (error.file, error.line, error.column) == (str(tmp_path / "Pulumi.dev.yaml"), 4, 7)
    assert (error.path, error.suggestion) == ("levels.spot-sistem", "Write spot-system.")


_BASES = {
    "company": """\
config:
  ebbtide:cluster: {owner: vision}
  ebbtide:policy: {levels: {spot-system: disabled}, limits: {regions: [us-central1]}}
  ebbtide:prices: prices.csv
""",
    "team": """\
config:
  ebbtide:cluster: {extends: Pulumi.company.yaml}
  ebbtide:policy: {limits: {maximumUsdPerHour: 60}}
""",
}


def _extending(directory: Path, config: str = "") -> StackFiles:
    for name, text in _BASES.items():
        (directory / f"Pulumi.{name}.yaml").write_text(text)
    return _stack(directory, f"  ebbtide:cluster: {{extends: Pulumi.team.yaml}}\n{config}")


def _changes(files: StackFiles) -> tuple[str, ...]:
    assert files.source
    return files.source.declaration.changes


def test_a_stack_takes_the_policy_and_the_prices_of_its_bases(tmp_path: Path) -> None:
    """Policy and prices of all bases apply, merged with those of the stack's file."""
    files = _extending(tmp_path)
    policy = files.policy()
    assert policy.levels == {"spot-system": "disabled"}
    assert (policy.limits.regions, policy.limits.maximum_usd_per_hour) == (("us-central1",), 60)
    assert (files.prices_file, _changes(files)) == ("prices.csv", ())

    own = "  ebbtide:policy: {limits: {regions: null, idleUsdPerHour: 1}}\n  ebbtide:prices: own.csv\n"
    files = _extending(tmp_path, own)
    limits = files.policy().limits
    assert (limits.regions, limits.idle_usd_per_hour, limits.maximum_usd_per_hour) == (None, 1, 60)
    assert files.prices_file == "own.csv"
    assert set(_changes(files)) == {"policy.limits.regions", "policy.limits.idleUsdPerHour", "prices"}

    files = _extending(tmp_path, "  ebbtide:policy: null\n  ebbtide:prices: null\n")
    assert (files.policy(), files.prices_file) == (policy_of(None), "")


def test_errors_of_an_inherited_policy_are_in_the_bases_file(tmp_path: Path) -> None:
    """The stack's own file does not have the line."""
    _extending(tmp_path)
    (tmp_path / "Pulumi.team.yaml").write_text(_BASES["team"].replace("maximum", "most"))
    files = read_stack(tmp_path, "dev")
    with pytest.raises(PolicyError) as caught:
        files.policy()
    (error,) = explain(caught.value, files.source).report.errors
    assert (error.file, error.line) == (str(tmp_path / "Pulumi.team.yaml"), 3)


def test_a_misspelt_key_is_refused(tmp_path: Path) -> None:
    """A misspelt key, which would have no effect, is refused."""
    with pytest.raises(StackFileError, match="Write `ebbtide:policy:`"):
        _stack(tmp_path, "  ebbtide:polcy: {}\n")  # codespell:ignore polcy


def test_the_schema_has_the_ids() -> None:
    """Editors complete them."""
    schema = policy_schema()
    ids = [rule.id for rule in RULES]
    assert schema["properties"]["levels"]["propertyNames"]["enum"] == ids
    assert schema["$defs"]["PolicyException"]["properties"]["rule"]["enum"] == ids
    assert "idleUsdPerHour" in schema["$defs"]["Limits"]["properties"]


def _text(recording: Recording, policy: object = None, *, values: bool = False) -> str:
    out = StringIO()
    document = preview_of(recording, policy=policy_of(policy))
    render(document, Console(file=out, width=80, highlight=False), values=values)
    return out.getvalue()


def test_the_dev_stack_fits_one_screen() -> None:
    """The preview of dev, with its advice, fits 80 columns and 24 lines."""
    text = _text(synth_stack(ROOT / "Pulumi.dev.yaml"))
    assert len(text.splitlines()) <= 24
    assert "Policy advisory: spot-system (pool system)\n" in text


def _pod(name: str) -> Resource:
    spec: Plain = {"containers": [{"image": "busybox"}]}
    type_ = "kubernetes:core/v1:Pod"
    return Resource(
        urn=f"urn:pulumi:dev::shop::{type_}::{name}", type=type_, name=name, inputs={"spec": spec}
    )


def test_findings_that_fail_come_first() -> None:
    """Others are named in one line, many of a rule as a number; an exception shows as one."""
    recording = Recording(project="shop", stack="dev", resources=tuple(map(_pod, "abcde")))
    mandatory = _text(recording).splitlines()
    assert mandatory[2:4] == [
        "Policy",
        "- mandatory: fixed-versions, a: The image busybox has no fixed version. Write a",
    ]
    policy = {
        "levels": {"fixed-versions": "advisory"},
        "exceptions": [{"rule": "fixed-versions", "resource": "a", "reason": "its vendor has one tag"}],
    }
    advisory = _text(recording, policy)
    assert "Policy advisory: fixed-versions (4 resources); excepted: fixed-versions (a)\n" in advisory
    assert "its vendor has one tag" not in advisory
    assert "its vendor has one tag" in _text(recording, policy, values=True)
