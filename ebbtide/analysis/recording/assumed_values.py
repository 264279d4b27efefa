"""Assumed values, recognizable in any text.

Programs concatenate, serialize and encode these values. The marker is therefore part of the text, in a form
that is valid for its type (a host name, a UUID, an address), so that parsers accept it.
"""

import base64
import hashlib
import re
from typing import Final

WORD: Final = "assumed"
"""Part of every assumed name; valid in a DNS label, an e-mail address, a path and a cloud's resource name."""

_UUID_PREFIX: Final = "a550ed00-0000-4000-8000-"
ADDRESS: Final = "192.0.2.10"
"""An assumed IP address, from a block reserved for documentation (RFC 5737)."""

_CHARACTER: Final = r"[\w.@:/-]"
_PATTERN: Final = re.compile(
    # A search begins only at the start of a word: from each of its characters, a long word takes minutes.
    rf"(?<!{_CHARACTER}){_CHARACTER}*{WORD}{_CHARACTER}*|{_UUID_PREFIX}[0-9a-f]{{12}}|{re.escape(ADDRESS)}"
)

# Generated once for this file (`openssl req -x509 -newkey ec`, private key discarded), so that code that
# decodes a cluster's certificate works. It signs nothing.
CERTIFICATE: Final = """\
-----BEGIN CERTIFICATE-----
MIIBqTCCAU+gAwIBAgIUUHYL7WFczHt2wwkcmvFWtwfNs44wCgYIKoZIzj0EAwIw
KTEnMCUGA1UEAwweYXNzdW1lZCBieSB0aGUgRWJidGlkZSBwcmV2aWV3MCAXDTI2
MTEyMTEyNDg1OFoYDzIxMjYxMDI4MTI0ODU4WjApMScwJQYDVQQDDB5hc3N1bWVk
IGJ5IHRoZSBFYmJ0aWRlIHByZXZpZXcwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQ77xPsJzMFPmagRDRgf4gpzyXLUjZbECdfm2b5ovXsCRYLZ0FavBqGB66uWd8p
BW9dXnzzc73VHlZmbh+Ea9ulo1MwUTAdBgNVHQ4EFgQUEaWOuvZJniXDFnvVde4Q
p5Ymz3EwHwYDVR0jBBgwFoAUEaWOuvZJniXDFnvVde4Qp5Ymz3EwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiBXuOVF/gOoTq4ASEmDc1OUzoz4Vvsn
BROTCtrsVoQaegIhAPBLZWI8Z2YzXNYQMt8yvC7mQhVouMqytkMrduCESf1l
-----END CERTIFICATE-----
"""

CERTIFICATE_BASE64: Final = base64.b64encode(CERTIFICATE.encode()).decode()
"""`CERTIFICATE` in the clouds' encoding."""


def uuid_for(seed: str) -> str:
    """Return an assumed UUID, deterministic for the seed, so that previews are reproducible."""
    return _UUID_PREFIX + hashlib.sha256(seed.encode()).hexdigest()[:12]


def is_assumed(text: str) -> bool:
    """Return whether any part of a text is assumed."""
    return _PATTERN.search(text) is not None or text == CERTIFICATE_BASE64


def assumed_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each assumed word in a text, for highlighting."""
    return [match.span() for match in _PATTERN.finditer(text)]
