import json
from pathlib import Path

import pytest

from ebbtide.recording.values import UNKNOWN
from ebbtide_rehearsal.cloud.kubernetes.kubeconfig import KubeconfigError, active, change, loaded
from ebbtide_rehearsal.cloud.kubernetes.settings import on, wrong_with


def _config(server: str, *, user: str = "a", namespace: str = "") -> str:
    return json.dumps(
        {
            "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": user, "namespace": namespace}}],
            "users": [{"name": user, "user": {}}],
        }
    )


def test_a_kubeconfig_is_text_or_a_file(tmp_path: Path) -> None:
    """JSON or YAML; anything else is refused in a sentence."""
    file = tmp_path / "config"
    file.write_text(_config("https://one"))
    assert loaded(str(file)) == loaded(_config("https://one"))
    for text in ("just words", "[1]", "{"):
        with pytest.raises(KubeconfigError, match="failed to parse kubeconfig"):
            loaded(text)


def test_the_current_context_leads_to_the_cluster() -> None:
    """And says which namespace is meant where none is named; the provider's own comes first."""
    assert active({"kubeconfig": _config("https://one")}) == ({"server": "https://one"}, "default")
    config = _config("https://one", namespace="team")
    assert active({"kubeconfig": config}) == ({"server": "https://one"}, "team")
    assert active({"kubeconfig": config, "namespace": "mine"}) == ({"server": "https://one"}, "mine")
    assert active({"kubeconfig": config, "context": "elsewhere"}) is None
    assert active({}) is None


def test_another_cluster_replaces_all_that_was_in_the_old_one() -> None:
    """Another user of the same one does not."""
    old = {"kubeconfig": _config("https://one")}
    assert list(change(old, {"kubeconfig": _config("https://two")}).replaces) == ["kubeconfig"]
    same = change(old, {"kubeconfig": _config("https://one", user="b")})
    assert (list(same.changed), list(same.replaces)) == (["kubeconfig"], [])
    assert not change(old, old).changed


def test_a_cluster_that_is_not_known_yet_may_be_another() -> None:
    """A preview says replaced."""
    assert change({"kubeconfig": _config("https://one")}, {"kubeconfig": UNKNOWN}).replaces


def test_a_cluster_with_an_identifier_is_known_by_that_alone() -> None:
    """A new address is then the same cluster, and another identifier another one."""
    old = {"kubeconfig": _config("https://one"), "clusterIdentifier": "a"}
    assert not change(old, {"kubeconfig": _config("https://two"), "clusterIdentifier": "a"}).replaces
    assert change(old, {**old, "clusterIdentifier": "b"}).replaces == ["clusterIdentifier"]


def test_options_that_a_rehearsal_does_not_have_are_refused() -> None:
    """Those that say nothing may stand there."""
    wrong = wrong_with({"kubeconfig": "x", "renderYamlToDirectory": "out", "strictMode": False})
    assert [failure.property for failure in wrong] == ["renderYamlToDirectory"]
    assert wrong_with({"enableServerSideApply": "false"})
    assert not wrong_with({"enableServerSideApply": "true", "namespace": UNKNOWN})


def test_options_come_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine sends a provider's inputs as JSON; one of them has a variable beside."""
    assert on({"enablePatchForce": "true"}, "enablePatchForce")
    assert not on({}, "enablePatchForce")
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    assert on({}, "deleteUnreachable")
    assert not on({"deleteUnreachable": "false"}, "deleteUnreachable")
