"""Logins to registries of Google Cloud and Azure: tokens of the fake clouds, and the real registry."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import trustme
from azure.identity import DefaultAzureCredential

from ebbtide.clients.clouds.azure import azure_login
from ebbtide.clients.clouds.google import google_login
from ebbtide.clients.clouds.interfaces import CloudApiError, CredentialsError
from ebbtide.work.registry import RegistryError, code_image, digest_of, push, user_credentials
from rehearsal.tests.registry import archive, put_image, registry
from rehearsal.tests.token_server import REFRESH_TOKEN, Grants, TokenServer, token_server
from rehearsal.tests.unit.rest_clouds import RestClouds, rest_clouds

pytestmark = pytest.mark.rehearsal

_CODE: Final = archive({"code/train.py": "print(1)"})
_AZURE: Final = ("00000000-0000-0000-0000-000000000000", REFRESH_TOKEN)
_READER: Final = ("reader", "reader")


@dataclass(frozen=True)
class _Guarded:
    """A registry in front of which a token server is.

    Attributes:
        address: its address.
        base: an image in another registry.
        tokens: the token server.
        authority: the file of the trusted authority.
    """

    address: str
    base: str
    tokens: TokenServer
    authority: Path


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Guarded]:
    """A registry with users who may push, or only pull."""
    authority, directory = trustme.CA(), tmp_path_factory.mktemp("guarded")
    grants: Grants = {_AZURE: frozenset({"pull", "push"}), _READER: frozenset({"pull"})}
    with (
        token_server(authority, grants) as tokens,
        registry(directory, authority=authority, tokens=tokens) as address,
        registry(tmp_path_factory.mktemp("open")) as public,
    ):
        base = f"{public}/bases/python:3"
        put_image(base, {"etc/base": "base"})
        yield _Guarded(address, base, tokens, directory / "authority.pem")


@pytest.fixture
def trusted(guarded: _Guarded, monkeypatch: pytest.MonkeyPatch) -> _Guarded:
    """The registry, whose certificate this process trusts."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(guarded.authority))
    return guarded


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestClouds]:
    """The fake clouds, with a user's credentials in the environment."""
    with rest_clouds(tmp_path, monkeypatch) as clouds:
        yield clouds


def test_tokens_for_reading_and_writing(trusted: _Guarded) -> None:
    """Tokens are requested for the actions of each request, and base layers of the same registry are mounted
    across repositories."""
    known = {trusted.address: _AZURE}.get
    first = code_image(trusted.base, f"{trusted.address}/team/base", _CODE, known)
    push(first, known, print)
    second = code_image(first.name, f"{trusted.address}/team/model", _CODE, known)
    push(second, known, print)
    scopes = {scope.replace("push,pull", "pull,push") for scope in trusted.tokens.scopes}
    assert {"repository:team/model:pull,push", "repository:team/base:pull"} <= scopes
    assert code_image(first.name, f"{trusted.address}/team/model", _CODE, known).name == second.name


def test_a_user_who_may_only_pull(trusted: _Guarded) -> None:
    """The push is refused with the repository, and the roles that allow it."""
    target = f"{trusted.address}/team/other"
    known = {trusted.address: _READER}.get
    image = code_image(trusted.base, target, _CODE, known)
    with pytest.raises(RegistryError, match=f"^You may not push to {target}.*artifactregistry.writer"):
        push(image, known, print)


def test_an_unknown_user(trusted: _Guarded) -> None:
    """A base image that the user may not pull is named with the commands that log in."""
    base, host = f"{trusted.address}/team/base@{digest_of(b'')}", trusted.base.partition("/")[0]
    with pytest.raises(RegistryError, match=r"or you may not pull it.*az login"):
        code_image(base, f"{host}/team/model", _CODE, {trusted.address: ("eve", "eve")}.get)


def test_azure(guarded: _Guarded, clouds: RestClouds, tmp_path: Path) -> None:
    """The registry exchanges the token of the user's credentials; another tenant's is refused."""
    del clouds
    with (tmp_path / "ca.pem").open("ab") as trusted:
        trusted.write(guarded.authority.read_bytes())
    tokens = guarded.tokens
    with pytest.raises(CredentialsError, match="refuses the login of your Azure account with status 401"):
        azure_login(tokens.address)
    credential = DefaultAzureCredential()
    tokens.entra_tokens.add(credential.get_token("https://containerregistry.azure.net/.default").token)
    login = azure_login(tokens.address, credential)
    assert login == _AZURE
    image = code_image(guarded.base, f"{guarded.address}/team/azure", _CODE, {guarded.address: login}.get)
    push(image, {guarded.address: login}.get, print)
    with pytest.raises(CloudApiError, match="does not answer"):
        azure_login("localhost:1")


def test_hosts_of_clouds(clouds: RestClouds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts of Google Cloud get an access token; those of neither cloud get nothing without a login."""
    del clouds
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    for host in ("europe-west4-docker.pkg.dev", "gcr.io", "eu.gcr.io"):
        login = user_credentials(host)
        assert login is not None
        assert login[0] == "oauth2accesstoken"
    assert user_credentials("registry-1.docker.io") is None
    assert user_credentials("pkg.dev.example") is None


def test_google(clouds: RestClouds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The access token is that of the application default credentials, else gcloud's."""
    del clouds
    user, token = google_login()
    assert (user, bool(token)) == ("oauth2accesstoken", True)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CredentialsError, match="application-default login"):
        google_login()
    gcloud = tmp_path / "gcloud"
    gcloud.write_text('#!/bin/sh\n[ "$1 $2" = "auth print-access-token" ] && echo of-gcloud\n')
    gcloud.chmod(0o755)
    assert google_login() == ("oauth2accesstoken", "of-gcloud")
