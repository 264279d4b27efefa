"""Parts of a rehearsal that stays: the copy of the project, the shell and the time limit."""

import os
import subprocess
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import yaml

from ebbtide.analysis.preview.stack_config import PLACEHOLDER
from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.regions import locations
from ebbtide_rehearsal.cloud.running import RunningCloud
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.engine import Shell
from ebbtide_rehearsal.stay import Stay, copy_project
from tests.declarations import GKE, changed


def test_a_project_is_copied_for_a_rehearsal_that_stays(tmp_path: Path) -> None:
    """Stack files are copied without the engine's lines and secrets; everything else is linked."""
    root = tmp_path / "mine"
    (root / "stacks").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "Pulumi.yaml").write_text("name: mine\nruntime: python\nstackConfigDir: stacks\n")
    (root / "__main__.py").touch()
    (root / "stacks" / "Pulumi.dev.yaml").write_text(
        "# Kept.\nencryptionsalt: v1:a=\nconfig:\n  mine:token:\n    secure: v1:b=\n  mine:name: c\n"
    )
    project = tmp_path / "copy"
    copied = copy_project(read_stack(root, "dev"), project)
    assert copied == project / "stacks"
    assert (copied / "Pulumi.dev.yaml").read_text() == (
        f"# Kept.\nconfig:\n  mine:token: '{PLACEHOLDER}'\n  mine:name: c\n"
    )
    assert sorted(item.name for item in project.iterdir()) == ["Pulumi.yaml", "__main__.py", "stacks"]
    assert (project / "__main__.py").is_symlink()


def test_a_rehearsal_stays_until_its_time_limit(tmp_path: Path) -> None:
    """Meanwhile the cloud gets the regions of a changed stack file."""
    region = {"name": "us-new1", "zones": ["us-new1-a"]}
    declared = changed(GKE, cloud={**GKE["cloud"], "regions": [region]})
    (tmp_path / "Pulumi.yaml").write_text("name: mine\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {"ebbtide:cluster": declared}}))
    store = Store(tmp_path / "store")
    cloud = cast("RunningCloud", SimpleNamespace(store=store, check=lambda: None))
    shell = Shell((), {}, {})
    Stay("dev", tmp_path, tmp_path, shell, cloud, tmp_path / "env.sh").wait(timedelta(seconds=1))
    assert "us-new1" in locations(store, CloudKind.GKE).regions()


def test_exports_set_a_shell(tmp_path: Path) -> None:
    """Values with blanks and quotes arrive; variables of the user's own clouds are gone."""
    shell = Shell((tmp_path,), {"A": "it's a b"}, {})
    lines = "\n".join(shell.exports())
    command = f'{lines}\nprintf "%s|%s|%s" "$A" "$PULUMI_ACCESS_TOKEN" "${{PATH%%:*}}"'
    environment = {"PATH": os.environ["PATH"], "PULUMI_ACCESS_TOKEN": "mine"}
    done = subprocess.run(
        ["/bin/sh", "-c", command], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"it's a b||{tmp_path}"
