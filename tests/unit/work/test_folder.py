"""Folders of code: the files that are taken, and their archive."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from ebbtide.work.errors import WorkloadError
from ebbtide.work.runs import folder as folder_module
from ebbtide.work.runs.folder import read_folder


def _file(root: Path, path: str, text: str = "x") -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def _taken(root: Path) -> list[str]:
    return [file.path for file in read_folder(root).files]


def test_gitignore(tmp_path: Path) -> None:
    """Patterns of the folder, of a subdirectory and of the repository above apply; the nearest
    one decides."""
    (tmp_path / ".git").mkdir()
    _file(tmp_path, ".gitignore", "*.ckpt\n/src/data\n")
    root = tmp_path / "src"
    for path in ("train.py", "a.ckpt", "data/set", "models/b.ckpt", "models/c.log", "sub/.git/config"):
        _file(root, path)
    _file(root, "__pycache__/train.pyc")
    _file(root, "models/.gitignore", "!b.ckpt\n*.log\n")
    assert _taken(root) == ["models/.gitignore", "models/b.ckpt", "train.py"]


def test_dockerignore(tmp_path: Path) -> None:
    """Patterns are relative to the folder, as Docker's are, and may include files of an excluded directory
    again."""
    for path in ("train.py", "a.log", "sub/a.log", "sub/deep/b.tmp", "out/x", "out/keep/y"):
        _file(tmp_path, path)
    _file(tmp_path, ".dockerignore", "# comment\n*.log\n**/*.tmp\nout\n!out/keep\n.dockerignore\n")
    assert _taken(tmp_path) == ["out/keep/y", "sub/a.log", "train.py"]


def test_links(tmp_path: Path) -> None:
    """Links within the folder stay links; absolute ones, and those that lead out of it, are listed."""
    root = tmp_path / "code"
    _file(root, "train.py")
    (root / "main.py").symlink_to("train.py")
    (root / "data").symlink_to("/etc")
    (root / "up").symlink_to("../..")
    (root / "back").symlink_to("../code/train.py")
    (root / "absolute").symlink_to(root / "train.py")
    (root / "itself").symlink_to("itself")
    folder = read_folder(root)
    assert [(file.path, file.target) for file in folder.files] == [
        ("itself", "itself"),
        ("main.py", "train.py"),
        ("train.py", ""),
    ]
    assert folder.skipped == ("absolute", "back", "data", "up")


_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----"  # gitleaks:allow


@pytest.mark.parametrize(
    ("path", "content", "held"),
    [
        (".env", "x", "environment variables with their secrets"),
        ("sub/.ENV", "x", "environment variables with their secrets"),
        (".env.production", "x", "environment variables with their secrets"),
        ("config/prod.env", "x", "environment variables with their secrets"),
        ("id_ed25519", "x", "a private SSH key"),
        ("certs/server.key", _KEY, "a private key"),
        ("credentials.json", "{}", "the credentials of an application"),
        ("acme-ml-0a1b2c.json", '{"private_key": "x"}', "a key of a Google Cloud service account"),
        (".aws/credentials", "x", "access to AWS"),
        ("home/.kube/config", "x", "access to clusters"),
        (".npmrc", "//registry.npmjs.org/:_authToken=x", "a token of a package registry"),
        (".npmrc", "//npm.acme.example/:_password=eA==", "a password of a package registry"),
        ("id_mldsa44_ed25519", "x", "a private SSH key"),
        (".config/git/credentials", "https://ada:x@acme.example", "passwords"),
        (".kaggle/access_token", "x", "a token of Kaggle"),
        ("huggingface/stored_tokens", "[default]", "tokens of Hugging Face"),
        ("terraform.tfstate.backup", "{}", "a state with secrets in plain text"),
    ],
)
def test_secrets(tmp_path: Path, path: str, content: str, held: str) -> None:
    """A file that holds secrets is refused with what it holds, and sent if its path is named."""
    _file(tmp_path, "train.py")
    _file(tmp_path, path, content)
    with pytest.raises(WorkloadError) as caught:
        read_folder(tmp_path)
    assert f"could read them: {path} ({held})." in str(caught.value)
    assert f"as in `!{path}`." in str(caught.value)
    _file(tmp_path, ".dockerignore", f"!**/{Path(path).name}\n")
    with pytest.raises(WorkloadError, match="hold secrets"):  # not named, but matched
        read_folder(tmp_path)
    _file(tmp_path, ".dockerignore", f".dockerignore\n!{path}\n")
    assert _taken(tmp_path) == sorted([path, "train.py"])
    _file(tmp_path, ".dockerignore", f".dockerignore\n{path}\n")
    assert _taken(tmp_path) == ["train.py"]


def test_files_that_hold_no_secrets(tmp_path: Path) -> None:
    """Templates, certificates, public keys, code and other JSON are sent."""
    files = {
        ".env.example": "TOKEN=",
        "ca.pem": "-----BEGIN CERTIFICATE-----",
        "id_rsa.pub": "ssh-rsa",
        "secrets.py": "import secrets",
        "credentials.py": "pass",
        "config.json": '{"lr": 0.1}',
        "token": "x",
        "slides.key": "x",
        ".npmrc": "always-auth=true",
        "env": "x",
    }
    for path, content in files.items():
        _file(tmp_path, path, content)
    assert _taken(tmp_path) == sorted(files)


def test_the_archive_is_reproducible(tmp_path: Path) -> None:
    """Times, owners and other permissions do not change it; contents and executable bits do, and every
    user can write in the directories of a layer."""
    for name in ("a", "b"):
        for path in ("train.py", "sub/run.sh"):
            _file(tmp_path / name, path, path)
        os.utime(tmp_path / name / "train.py", (len(name), 10_000))
    (tmp_path / "b/train.py").chmod(0o600)
    first, second = (read_folder(tmp_path / name).archive("code") for name in ("a", "b"))
    assert first == second
    (tmp_path / "b/sub/run.sh").chmod(0o755)
    changed = read_folder(tmp_path / "b").archive("code")
    assert changed != first
    with tarfile.open(fileobj=io.BytesIO(changed)) as archive:
        assert [(item.name, item.mode, item.mtime) for item in archive] == [
            ("code", 0o777, 0),
            ("code/sub", 0o777, 0),
            ("code/.wh..wh..opq", 0o644, 0),
            ("code/sub/run.sh", 0o755, 0),
            ("code/train.py", 0o644, 0),
        ]


def test_folders_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error names a missing folder, an empty one, and the largest files of a large one."""
    with pytest.raises(WorkloadError, match="nothing is not a directory: write the folder"):
        read_folder(tmp_path / "nothing")
    with pytest.raises(WorkloadError, match="has no files that are not ignored"):
        read_folder(tmp_path)
    monkeypatch.setattr(folder_module, "LARGEST", 3_000_000)
    _file(tmp_path, "train.py", "x" * 100)
    _file(tmp_path, "data.bin", "x" * 2_500_000)
    _file(tmp_path, "more.bin", "x" * 1_000_000)
    with pytest.raises(WorkloadError) as caught:
        read_folder(tmp_path)
    assert "has 3.5 MB, and at most 3.0 MB are supported" in str(caught.value)
    assert "The largest files: data.bin 2.5 MB, more.bin 1.0 MB, train.py 1 kB." in str(caught.value)
