"""How a value that stands for a cloud's answer is made, and how it is recognised again in any text.

Such a value travels: it is concatenated, put into JSON, encoded. So the mark is in the text itself, in a form
that the thing it stands for allows (a host name, a UUID, an address), and nothing that parses it breaks.
"""

import base64
import hashlib
import re
from typing import Final

WORD: Final = "assumed"
"""Stands in every assumed name; legal in a DNS label, an e-mail address, a path, a cloud's resource name."""

_UUID_PREFIX: Final = "a550ed00-0000-4000-8000-"
ADDRESS: Final = "192.0.2.10"
"""An assumed IP address, of a block that is reserved for documentation (RFC 5737)."""

_PATTERN: Final = re.compile(rf"[\w.@:/-]*{WORD}[\w.@:/-]*|{_UUID_PREFIX}[0-9a-f]{{12}}|{re.escape(ADDRESS)}")

# Made once for this file (`openssl req -x509 -newkey ec`, its key thrown away), so that what decodes and
# parses a cluster's certificate finds one. It signs nothing.
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
"""`CERTIFICATE` as the clouds give it."""


def uuid_for(seed: str) -> str:
    """An assumed UUID: the same for the same seed, so that a preview says the same thing twice."""
    return _UUID_PREFIX + hashlib.sha256(seed.encode()).hexdigest()[:12]


def is_assumed(text: str) -> bool:
    """Whether anything in a text was assumed."""
    return _PATTERN.search(text) is not None or text == CERTIFICATE_BASE64


def assumed_spans(text: str) -> list[tuple[int, int]]:
    """Where in a text the assumed words stand, as start and end, for a renderer to highlight."""
    return [match.span() for match in _PATTERN.finditer(text)]
