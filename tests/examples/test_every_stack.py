"""Every stack's file in the repository, examples among them: it is a declaration, and it previews."""

from pathlib import Path

import pytest

from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from tests.repository import ROOT, STACK_FILES, STORIES, declaration, relative
from tests.synth import synth_stack


@pytest.mark.parametrize("file", STACK_FILES, ids=relative)
def test_is_a_declaration(file: Path) -> None:
    """Nothing in it is refused, and it says everything but at most its name."""
    declare(declaration(file), default_name="ebbtide-stack")


@pytest.mark.parametrize("file", STACK_FILES, ids=relative)
def test_previews(file: Path) -> None:
    """The real program makes its cluster and every declared pool; it logs no error and breaks no mandatory
    rule.
    """
    recording = synth_stack(file)
    cluster = declare(declaration(file), default_name=f"ebbtide-{file.name.split('.')[1]}")
    assert recording.says("error") == ()
    assert recording.outputs["clusterName"] == cluster.physical_name
    made = {
        resource.name for resource in recording if resource.type.endswith(":NodePool") and not resource.custom
    }
    assert {f"{cluster.name}-{pool.name}" for pool in cluster.work_pools} <= made
    shown = recording.outputs["placementProfile"]
    assert isinstance(shown, str)
    assert Profile.load(shown) == profile(cluster)
    assert [item for item in preview_of(recording).findings if item.is_refused] == []


@pytest.mark.parametrize("story", STORIES)
def test_every_story_is_told(story: str) -> None:
    """A story has its stack's file and a page that says how to preview it."""
    directory = ROOT / "examples" / story
    assert (directory / f"Pulumi.{story}.yaml").is_file()
    page = (directory / "README.md").read_text(encoding="utf-8")
    assert f"--config-file examples/{story}/Pulumi.{story}.yaml" in page
