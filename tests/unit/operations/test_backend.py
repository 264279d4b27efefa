"""Empty files of attributes in a backend's directory."""

from pathlib import Path

import pytest

from ebbtide.operations.backend import repaired


@pytest.mark.parametrize("parameters", ["", "?no_tmp_dir=true"])
def test_empty_ones_are_deleted(tmp_path: Path, parameters: str) -> None:
    """All other files stay."""
    stacks = tmp_path / ".pulumi" / "stacks" / "ebbtide"
    stacks.mkdir(parents=True)
    files = {"dev.json": "{}", "dev.json.attrs": "", "prod.json": "", "prod.json.attrs": "{}"}
    for name, text in files.items():
        (stacks / name).write_text(text)
    url = f"file://{tmp_path}{parameters}"
    assert repaired(url)
    assert {file.name for file in stacks.iterdir()} == files.keys() - {"dev.json.attrs"}
    assert not repaired(url)


def test_other_backends_have_none() -> None:
    """A bucket has attributes of its own."""
    assert not repaired("gs://acme-ml-pulumi")
