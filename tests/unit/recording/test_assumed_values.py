"""Assumed values are recognised, and are what they pretend to be."""

import base64
import ipaddress
import ssl
import uuid

import pytest

from ebbtide.analysis.recording.assumption_tables import (
    ADDRESS,
    CERTIFICATE,
    CERTIFICATE_BASE64,
    assumed_spans,
    is_assumed,
    uuid_for,
)


def test_assumed_values_parse() -> None:
    """A program that parses an id, an address or a certificate finds one."""
    assert uuid.UUID(uuid_for("tenant")).version == 4
    assert ipaddress.ip_address(ADDRESS).version == 4
    assert base64.b64decode(CERTIFICATE_BASE64).decode() == CERTIFICATE
    assert ssl.create_default_context(cadata=CERTIFICATE).cert_store_stats()["x509_ca"] == 1


def test_assumed_uuids_are_the_same_each_time_and_differ() -> None:
    """The same preview says the same twice; two identities are not one."""
    assert uuid_for("a") == uuid_for("a")
    assert uuid_for("a") != uuid_for("b")


@pytest.mark.parametrize(
    "text",
    [
        "gke-assumed-train-000000000000.us-central1.gke.goog",
        f"https://{ADDRESS}",
        f'{{"tenant": "{uuid_for("tenant")}"}}',
        CERTIFICATE_BASE64,
    ],
)
def test_an_assumption_is_recognised_inside_any_text(text: str) -> None:
    """An assumed value is recognised within a concatenated text or JSON."""
    assert is_assumed(text)


@pytest.mark.parametrize("text", ["train-dev", "192.0.2.1", "11111111-1111-4111-8111-111111111111", ""])
def test_what_was_declared_is_not_taken_for_assumed(text: str) -> None:
    """Another address of the same documentation block is not an assumed value."""
    assert not is_assumed(text)


def test_the_whole_assumed_word_is_marked() -> None:
    """A renderer highlights the host name, not five letters in it."""
    text = "server: https://gke-assumed-train.us-central1.gke.goog, project acme"
    assert [text[start:end] for start, end in assumed_spans(text)] == [
        "https://gke-assumed-train.us-central1.gke.goog"
    ]
