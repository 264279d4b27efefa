"""A project's files are read as the `pulumi` command reads them."""

import json
from pathlib import Path

import pytest

from ebbtide.analysis.preview.stack_files import (
    PLACEHOLDER,
    StackFileError,
    StackFiles,
    read_stack,
    stack_named_by,
)
from ebbtide.declaration.project.source import find_misplaced, find_source

PROJECT = "name: shop\nruntime: python\n"


def _files(directory: Path, **files: str) -> Path:
    """Write `Pulumi.yaml` and, for each keyword, `Pulumi.<keyword>.yaml`."""
    directory.mkdir(parents=True, exist_ok=True)
    files.setdefault("yaml", PROJECT)
    for name, text in files.items():
        (directory / ("Pulumi.yaml" if name == "yaml" else f"Pulumi.{name}.yaml")).write_text(text)
    return directory


def _read(directory: Path, dev: str, project: str = PROJECT) -> StackFiles:
    return read_stack(_files(directory, dev=dev, yaml=project), "dev")


def _refused(directory: Path, stack: str = "dev", config_file: Path | None = None) -> str:
    with pytest.raises(StackFileError) as caught:
        read_stack(directory, stack, config_file=config_file)
    return str(caught.value).replace(str(directory), "DIR")


def test_keys_and_values_are_what_the_engine_hands_over(tmp_path: Path) -> None:
    """Keys get the project's namespace, scalars become text, objects JSON; `a:config:b` is an old `a:b`, and
    a value that is written once may stand in two places."""
    files = _read(
        tmp_path,
        """
config:
  gcp:config:project: acme
  plain: text
  anchored: &a {x: 1, y: 2}
  merged: {<<: *a, y: 3}
  count: 3
  ratio: 0.50
  on: true
  nothing:
  ebbtide:cluster:
    name: train
    pools: [{name: a, nodes: {max: 4}}]
    labels: {country: no, answer: yes, at: 12:30, day: 2026-01-31, 5: five}
""",
    )
    cluster = json.loads(files.config["ebbtide:cluster"])
    assert cluster == {
        "name": "train",
        "pools": [{"name": "a", "nodes": {"max": 4}}],
        "labels": {"country": "no", "answer": "yes", "at": "12:30", "day": "2026-01-31", "5": "five"},
    }
    assert {key: value for key, value in files.config.items() if key != "ebbtide:cluster"} == {
        "gcp:project": "acme",
        "shop:plain": "text",
        "shop:anchored": '{"x":1,"y":2}',
        "shop:merged": '{"x":1,"y":3}',
        "shop:count": "3",
        "shop:ratio": "0.5",
        "shop:on": "true",
        "shop:nothing": "null",
    }
    assert files.secret_keys == frozenset()
    assert files.project == "shop"
    assert files.stack == "dev"
    assert files.program == tmp_path


def test_a_declaration_is_completed_with_the_settings(tmp_path: Path) -> None:
    """Owner, account and location of the stack are part of its declaration, as the program has it."""
    files = _read(
        tmp_path,
        """
config:
  ebbtide:owner: us
  ebbtide:project: acme-ml
  ebbtide:location: us-central1-a
  ebbtide:cluster: {pools: [], cloud: {location: us-east1-b}}
""",
    )
    cloud = {"kind": "gke", "project": "acme-ml", "location": "us-east1-b"}
    assert files.declaration() == {"owner": "us", "cloud": cloud, "pools": []}


@pytest.mark.parametrize(
    ("written", "handed"),
    [
        ("010", "8"),
        ("0o10", "8"),
        ("0x1F", "31"),
        ("1_000", "1000"),
        ("1e3", "1000"),
        ("1.5e-3", "0.0015"),
        ("-7", "-7"),
        ("'010'", "010"),
        ("True", "true"),
        ("off", "off"),
        ("~", "null"),
        (".5", "0.5"),
        ("1.2.3", "1.2.3"),
        ("[1, a]", '[1,"a"]'),
    ],
)
def test_scalars_are_those_of_yaml_as_go_reads_it(tmp_path: Path, written: str, handed: str) -> None:
    """PyYAML's own rules would make other values of some."""
    assert _read(tmp_path, f"config: {{key: {written}}}").config == {"shop:key": handed}


def test_an_encrypted_value_is_a_placeholder_and_secret(tmp_path: Path) -> None:
    """Nothing is decrypted; the whole key is secret, also when only a part of an object is encrypted."""
    files = _read(
        tmp_path,
        """
secretsprovider: passphrase
encryptionsalt: v1:abc:def
config:
  password: {secure: v1:ciphertext}
  ebbtide:cluster:
    name: train
    tokens: [{secure: v1:ciphertext}, plain]
  open: {secure: {not: a ciphertext}}
""",
    )
    assert files.config["shop:password"] == PLACEHOLDER
    assert json.loads(files.config["ebbtide:cluster"]) == {"name": "train", "tokens": [PLACEHOLDER, "plain"]}
    assert files.secret_keys == {"shop:password", "ebbtide:cluster"}
    assert "ciphertext" not in str({key: files.config[key] for key in files.secret_keys})


def test_defaults_of_the_project(tmp_path: Path) -> None:
    """A stack's value counts before the project's value or default, shorthand or not."""
    files = _read(
        tmp_path,
        "config: {b: mine}",
        PROJECT
        + """
config:
  a: short
  b: {type: string, default: theirs}
  c: {type: integer, default: 3}
  d: {type: string, value: fixed, secret: true}
  gcp:project: {value: acme}
  e: [1]
""",
    )
    assert files.config == {
        "shop:a": "short",
        "shop:b": "mine",
        "shop:c": "3",
        "shop:d": "fixed",
        "gcp:project": "acme",
        "shop:e": "[1]",
    }
    assert files.secret_keys == {"shop:d"}


def test_an_empty_stack_file(tmp_path: Path) -> None:
    """A stack without configuration is one."""
    assert _read(tmp_path, "").config == {}
    assert _read(tmp_path, "config:\n").config == {}


def test_another_file_may_hold_the_configuration(tmp_path: Path) -> None:
    """`--config-file` names another file, as for `pulumi`."""
    project = _files(tmp_path / "project")
    other = tmp_path / "elsewhere.yaml"
    other.write_text("config: {key: value}")
    files = read_stack(project, "dev", config_file=other)
    assert files.config == {"shop:key": "value"}
    assert files.config_file == other
    assert files.program == project


def test_the_project_is_found_from_below(tmp_path: Path) -> None:
    """The project is found from a subdirectory, as by `pulumi`."""
    _files(tmp_path, dev="config: {key: value}")
    below = tmp_path / "components" / "gke"
    below.mkdir(parents=True)
    assert read_stack(below, "dev").config == {"shop:key": "value"}


def test_the_projects_own_places(tmp_path: Path) -> None:
    """`main` moves the program, `stackConfigDir` the stacks' files; `runtime` may be an object."""
    _files(
        tmp_path,
        yaml="name: shop\nruntime: {name: python, options: {}}\nmain: src\nstackConfigDir: stacks\n",
    )
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.dev.yaml").write_text("config: {key: value}")
    files = read_stack(tmp_path, "dev")
    assert files.program == tmp_path / "src"
    assert files.root == tmp_path
    assert files.config == {"shop:key": "value"}


_PULUMIS_OWN = [
    "encryptionsalt: v1:wG1w=:v1:Zm9v:bar==",
    "secretsprovider: gcpkms://projects/acme-ml/locations/global/keyRings/pulumi/cryptoKeys/dev",
    "encryptedkey: Y2lwaGVydGV4dA==",
    "environment:\n  imports: [acme/dev]",
]
"""Keys of a stack's file beside `config`, such as `pulumi stack init` adds."""


@pytest.mark.parametrize("setting", _PULUMIS_OWN)
@pytest.mark.parametrize("form", ["{0}\n{1}\n", "{1}\n{0}\n"])
def test_pulumis_own_keys_are_no_fault(tmp_path: Path, setting: str, form: str) -> None:
    """Pulumi's own keys change neither the configuration nor the position of a value, and are not unused
    keys."""
    config = "config:\n  ebbtide:cluster:\n    owner: vision\n    pools: []"
    files = _read(tmp_path, form.format(setting, config))
    assert files.declaration() == {"owner": "vision", "pools": []}
    assert files.misplaced == find_misplaced(tmp_path, "dev") == ()
    source = find_source(tmp_path, "dev")
    assert source is not None
    line = 3 if form.startswith("{1}") else 4 + setting.count("\n")
    assert str(source.position("owner", source.declaration.value)).endswith(f"Pulumi.dev.yaml:{line}:5")


@pytest.mark.parametrize("setting", _PULUMIS_OWN)
def test_a_file_that_pulumi_wrote_declares_nothing(tmp_path: Path, setting: str) -> None:
    """`pulumi stack init` writes a file with its own key alone."""
    files = _read(tmp_path, setting)
    with pytest.raises(StackFileError, match=r"Pulumi\.dev\.yaml declares no cluster"):
        files.declaration()


def test_values_of_an_environment_are_said_to_be_missing(tmp_path: Path) -> None:
    """Only Pulumi Cloud can open it."""
    (warning,) = _read(tmp_path, "environment: [acme/dev]\nconfig: {}").warnings
    assert warning.startswith("Pulumi.dev.yaml uses a Pulumi ESC environment")


@pytest.mark.parametrize(
    ("name", "stack"),
    [
        ("Pulumi.dev.yaml", "dev"),
        ("Pulumi.pr-12.yml", "pr-12"),
        ("Pulumi.yaml", None),
        ("declaration.yaml", None),
    ],
)
def test_a_file_names_its_stack(name: str, stack: str | None) -> None:
    """By the form of its name alone."""
    assert stack_named_by(Path("somewhere") / name) == stack


def test_a_stack_that_is_not_there(tmp_path: Path) -> None:
    """The message names the file, the nearest stack, and all that are there; without any, what to do."""
    _files(tmp_path)
    assert _refused(tmp_path) == (
        "There is no stack dev: no file DIR/Pulumi.dev.yaml. There are no other stacks. Write that "
        "file, or name another with --config-file."
    )
    _files(tmp_path, dev="", pr="")
    (tmp_path / "Pulumi.dev-aks.yaml").write_text("")
    assert _refused(tmp_path, "dve") == (
        "There is no stack dve: no file DIR/Pulumi.dve.yaml. Did you mean dev? Existing stacks: "
        "dev, dev-aks, pr."
    )
    assert _refused(tmp_path, "zzz") == (
        "There is no stack zzz: no file DIR/Pulumi.zzz.yaml. Existing stacks: dev, dev-aks, pr."
    )


def test_no_project(tmp_path: Path) -> None:
    """The message says where was looked, and how to look elsewhere."""
    assert _refused(tmp_path) == (
        "There is no Pulumi project in DIR or above it: no Pulumi.yaml. Run this in the project's "
        "directory, or name the directory with --cwd."
    )
    assert _refused(tmp_path / "nowhere") == "There is no directory DIR."


def test_no_configuration_file(tmp_path: Path) -> None:
    """The one that was named is named."""
    _files(tmp_path)
    assert _refused(tmp_path, config_file=tmp_path / "other.yaml") == (
        "There is no file DIR/other.yaml, which --config-file names."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "config:\n  a: 1\n b: 2\n",
            (
                ":3:2: The indentation of this line does not match any key above it. Indent it like the "
                "keys that it belongs to."
            ),
        ),
        (
            "config:\n\ta: 1\n",
            ":2:1: The line is indented with a tab, which YAML does not allow. Indent with spaces.",
        ),
        (
            "config:\n  a: 1\n  b: 2\n  a: 3\n",
            ":4:3: The key `a` is written twice, first in line 2. Remove one of the two.",
        ),
        ("- a\n", " is a list; it must be a mapping with one `key: value` per line."),
        ("text\n", " is `text`; it must be a mapping with one `key: value` per line."),
        ("config: [a]\n", " is a list; it must be a mapping with one `key: value` per line."),
        ("config: {'a:b:c': 1}\n", " has the key `a:b:c`; a key is `name` or `namespace:name`."),
        ("config: {'a:': 1}\n", " has the key `a:`; a key is `name` or `namespace:name`."),
    ],
)
def test_a_broken_stack_file(tmp_path: Path, text: str, message: str) -> None:
    """File, line and column, or what stands there in place of what should."""
    _files(tmp_path, dev=text)
    assert _refused(tmp_path).removeprefix("`config` in ") == f"DIR/Pulumi.dev.yaml{message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "DIR/Pulumi.yaml is empty; it must be a mapping with one `key: value` per line."),
        ("runtime: python", "DIR/Pulumi.yaml has no `name`. Add one, such as `name: ebbtide`."),
        ("name: shop", "DIR/Pulumi.yaml has no `runtime`. Write `runtime: python` there."),
        (
            "name: shop\nruntime: nodejs",
            "DIR/Pulumi.yaml has `runtime: nodejs`. The preview supports `runtime: python` only.",
        ),
    ],
)
def test_a_broken_project_file(tmp_path: Path, text: str, message: str) -> None:
    """The message names what is missing, and what to write."""
    _files(tmp_path, yaml=text, dev="")
    assert _refused(tmp_path) == message


def test_a_value_that_the_project_asks_for(tmp_path: Path) -> None:
    """Keys with a type and no default need a value in every stack; all that have none are named."""
    _files(tmp_path, yaml=f"{PROJECT}config: {{size: {{type: string}}}}\n", dev="")
    assert _refused(tmp_path) == (
        "DIR/Pulumi.dev.yaml has no value for `shop:size`, which DIR/Pulumi.yaml requires of every stack. "
        "Write it under `config:`, or give it a `default` in Pulumi.yaml."
    )
    _files(tmp_path, yaml=f"{PROJECT}config: {{size: {{type: string}}, place: {{type: string}}}}\n", dev="")
    assert _refused(tmp_path) == (
        "DIR/Pulumi.dev.yaml has no value for `shop:size` and `shop:place`, which DIR/Pulumi.yaml requires "
        "of every stack. Write them under `config:`, or give them a `default` in Pulumi.yaml."
    )


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """A file that is not text is an error with its position."""
    _files(tmp_path)
    (tmp_path / "Pulumi.dev.yaml").write_bytes(b"config: \xff\n")
    assert _refused(tmp_path) == (
        "DIR/Pulumi.dev.yaml: The file is not UTF-8 text: invalid start byte at byte 8."
    )


def test_a_directory_in_place_of_a_file(tmp_path: Path) -> None:
    """A directory is not read as a stack's file."""
    _files(tmp_path)
    (tmp_path / "Pulumi.dev.yaml").mkdir()
    assert "There is no stack dev" in _refused(tmp_path)
