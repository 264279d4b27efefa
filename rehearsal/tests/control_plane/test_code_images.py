"""Images with the code of a folder, in the real distribution registry."""

import json
from pathlib import Path

import pytest
import trustme

from ebbtide.work.registry import CodeImage, RegistryError, code_image, digest_of, push
from rehearsal.tests.registry import (
    DOCKER,
    OCI,
    USER,
    anonymous,
    archive,
    put_image,
    put_manifest,
    read_image,
    registry,
)

pytestmark = pytest.mark.rehearsal

_CODE = archive({"code/train.py": "print(1)"})


def _pushed(base: str, repository: str, layer: bytes = _CODE) -> tuple[CodeImage, list[tuple[int, int]]]:
    """Return a pushed image, and the progress of copied layers."""
    copies: list[tuple[int, int]] = []
    image = code_image(base, repository, layer, anonymous)
    push(image, anonymous, lambda copied, total: copies.append((copied, total)))
    return image, copies


@pytest.mark.parametrize("kind", [OCI, DOCKER], ids=["oci", "docker"])
def test_a_layer_on_a_base(address: str, kind: str) -> None:
    """The image has the base's layers and settings, then the code, and each layer's digest in its config."""
    base = f"{address}/bases/{'oci' if kind == OCI else 'docker'}:1"
    put_image(base, {"etc/base": "base"}, kind=kind)
    image, _ = _pushed(base, f"{address}/team/model")
    manifest, config, layers = read_image(image.name)
    before, settings, _ = read_image(base)
    assert manifest["mediaType"] == kind.format("manifest")
    assert layers == [{"etc/base": "base"}, {"code/train.py": "print(1)"}]
    assert manifest["layers"][1]["mediaType"] == before["layers"][0]["mediaType"]
    assert config["config"] == settings["config"]
    assert len(config["rootfs"]["diff_ids"]) == len(layers)


def test_unchanged_code_is_not_pushed_again(address: str) -> None:
    """The same code gives the same name without a push; other code copies no layer of the base again."""
    base = f"{address}/bases/again:1"
    put_image(base, {"etc/base": "again"})
    first, copies = _pushed(base, f"{address}/team/again")
    assert len(copies) == 1
    second = code_image(base, f"{address}/team/again", archive({"code/train.py": "print(1)"}), anonymous)
    assert (second.name, second.manifest) == (first.name, "")
    other, copies = _pushed(base, f"{address}/team/again", archive({"code/train.py": "print(2)"}))
    assert (other.name != first.name, copies) == (True, [])
    put_image(base, {"etc/base": "newer"})
    assert code_image(base, f"{address}/team/again", _CODE, anonymous).manifest


def test_layers_of_another_registry_are_copied(address: str, tmp_path: Path) -> None:
    """The base's layers come with the code, and the progress has their sizes."""
    with registry(tmp_path) as other:
        base = f"{other}/bases/far:1"
        put_image(base, {"etc/base": "far"})
        image, copies = _pushed(base, f"{address}/team/far")
        size = read_image(base)[0]["layers"][0]["size"]
    assert copies == [(0, size)]
    assert read_image(image.name)[2][0] == {"etc/base": "far"}


def test_the_platform_of_the_nodes(address: str) -> None:
    """The base is the image of an index for the nodes' architecture; without one it is refused."""
    entries = [
        {"mediaType": OCI.format("manifest"), "size": 1, "platform": {"os": "linux", "architecture": of}}
        | {"digest": put_image(f"{address}/bases/many:{of}", {"etc/of": of}, architecture=of)}
        for of in ("arm64", "amd64")
    ]
    index = {"schemaVersion": 2, "mediaType": OCI.format("index")}
    put_manifest(f"{address}/bases/many:1", {**index, "manifests": entries})
    put_manifest(f"{address}/bases/many:2", {**index, "manifests": entries[:1]})
    target = f"{address}/team/many"
    for architecture in ("amd64", "arm64"):
        image = code_image(f"{address}/bases/many:1", target, _CODE, anonymous, architecture)
        push(image, anonymous, print)
        assert read_image(image.name)[2][0] == {"etc/of": architecture}
    for base, architecture in (("many:2", "amd64"), ("many:amd64", "arm64")):
        with pytest.raises(RegistryError, match=f"{base} has no variant for linux/{architecture}"):
            code_image(f"{address}/bases/{base}", target, _CODE, anonymous, architecture)


def test_a_base_that_does_not_exist(address: str) -> None:
    """The error names the image, whether its tag, its digest or its repository is missing."""
    put_image(f"{address}/bases/known:1", {"a": "b"})
    for base in (f"{address}/bases/known:2", f"{address}/nowhere/none:1"):
        with pytest.raises(RegistryError, match=f"^Image {base} does not exist"):
            code_image(base, f"{address}/team/model", _CODE, anonymous)
    with pytest.raises(RegistryError, match=f"^The image is not in {address}/bases/known, or you may not"):
        code_image(f"{address}/bases/known@{digest_of(b'')}", f"{address}/team/model", _CODE, anonymous)


def test_a_registry_with_a_login(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's credentials are sent over TLS; without them, reading and pushing are refused."""
    base = f"{address}/bases/login:1"
    put_image(base, {"etc/base": "login"})
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "authority.pem"))
    with registry(tmp_path, login=True, authority=authority) as guarded:
        target = f"{guarded}/team/model"
        with pytest.raises(RegistryError, match=f"^You may not push to {target}"):
            code_image(base, target, _CODE, anonymous)
        with pytest.raises(RegistryError, match="or you may not pull it"):
            code_image(f"{target}:1", f"{address}/team/model", _CODE, anonymous)
        known = {guarded: USER}.get
        image = code_image(base, target, _CODE, known)
        with pytest.raises(RegistryError, match=f"^You may not push to {target}"):
            push(image, anonymous, print)
        push(image, known, print)
        assert code_image(base, target, _CODE, known).manifest == ""


def test_a_login_over_plain_http(address: str, tmp_path: Path) -> None:
    """Credentials are not sent unencrypted."""
    base = f"{address}/bases/plain:1"
    put_image(base, {"etc/base": "plain"})
    with registry(tmp_path, login=True) as guarded, pytest.raises(RegistryError, match="unencrypted"):
        code_image(base, f"{guarded}/team/model", _CODE, lambda _: USER)


def test_a_full_registry(address: str, tmp_path: Path) -> None:
    """The error has the registry's own words, and says what to delete; no tag is left."""
    base = f"{address}/bases/full:1"
    put_image(base, {"etc/base": "full"})
    large = archive({"code/data": json.dumps([digest_of(str(number).encode()) for number in range(5000)])})
    with registry(tmp_path, blocks=16) as small:
        image = code_image(base, f"{small}/team/model", large, anonymous)
        with pytest.raises(RegistryError, match=r"^The registry of \S+ is full \(.*file too large\)"):
            push(image, anonymous, print)
        assert code_image(base, f"{small}/team/model", large, anonymous).manifest


def test_a_registry_that_does_not_answer(address: str, tmp_path: Path) -> None:
    """The error names its host."""
    with registry(tmp_path) as gone:
        pass
    with pytest.raises(RegistryError, match=rf"^{gone} cannot be reached \(ConnectionError\)"):
        code_image(f"{gone}/base:1", f"{address}/team/model", _CODE, anonymous)


@pytest.mark.parametrize("name", ["Model", "a/b:c:d", "a@sha256:12", "", "acme.example/", "a b"])
def test_names_that_are_none(name: str) -> None:
    """A name that no runtime could pull is refused before any request."""
    with pytest.raises(RegistryError, match="is not an image's name"):
        code_image(name, "localhost:1/team/model", _CODE, anonymous)
