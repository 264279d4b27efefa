"""Scrubbing of recorded provider calls: secrets are removed, identifying values get placeholders.

A placeholder is the same for the same value of one command, so that ids still refer to each other, and a
valid value of its kind, so that a cloud's rules still apply to it: a UUID, an address, a project id. A
removed secret is a word in brackets. Names of resources, and private addresses, are kept.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from ebbtide.analysis.recording.values import (
    SECRET_TEXT,
    UNKNOWN,
    UNKNOWN_TEXT,
    Plain,
    Secret,
    leaves,
    revealed,
)

_SHORTEST_SECRET: Final = 6
"""A shorter secret, such as a flag, is too frequent in other texts to be replaced there."""

_REMOVED: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL), "[pem]"),
    (re.compile(r"\bssh-(?:rsa|dss|ed25519)\s+[A-Za-z0-9+/=]+(?: [^\s\"]+)?"), "[ssh-key]"),
    (re.compile(r"\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)*"), "[jwt]"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 [token]"),
    (re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"), "[credentials]"),
    (re.compile(r"(?i)\b(sig|skoid|sktid|x-goog-(?:signature|credential))=[^&\s\"']+"), r"\1=[signature]"),
    (
        re.compile(
            r"(?i)\b(accountkey|sharedaccesskey|sharedaccesssignature|instrumentationkey|password|pwd|"
            r"client[_-]?secret|access[_-]?token|refresh[_-]?token|id[_-]?token|api[_-]?key)\b"
            r"(\"?\s*[=:]\s*\"?)(?!\[)[^;&\s\"',}]+"
        ),
        r"\1\2[secret]",
    ),
    # Prefixes of Google's, GitHub's, Pulumi's and AWS's keys, and the middle of an Entra client secret.
    (
        re.compile(
            r"\b(?:ya29\.[\w.-]+|AIza[\w-]{30,}|GOCSPX-[\w-]+|1//[\w-]{20,}|GOOG[\w]{20,}|gh[pousr]_\w{20,}|"
            r"github_pat_\w{20,}|pul-[0-9a-f]{40}|(?:AKIA|ASIA)[A-Z0-9]{16}|[\w.~-]{3}\dQ~[\w.~-]{30,})"
        ),
        "[token]",
    ),
)
_BASE64: Final = re.compile(r"(?<![\w./+-])(?:[A-Za-z0-9+/]{24,}={0,2}|[A-Za-z0-9_-]{24,}={0,2})(?![\w+/=-])")
"""Base64 in either alphabet."""
_LONG: Final = 40
_DIGITS: Final = 2
_CAPITALS: Final = 4
"""Fewer digits or capitals are rarer than one time in a hundred in 40 random characters of base64."""

_SECRET_KEY: Final = re.compile(
    r"(?i)(password|passwd|passphrase|secret|credentials?|token|private_?key|client_?key|access_?key|"
    r"account_?key|shared_?key|api_?key|raw_?key|encrypt(ion|ed)_?key|(primary|secondary)_?key|key_?data|"
    r"connection_?string|sas_?(url|uri|token)|"
    r"certificate(_?data)?|certificate_?authority(_?data)?|kube_?config(_?raw)?|signature)$"
)
"""Names of properties whose text is a secret, at their end: `clientSecret` is one, `secretName` is not."""
_KUBECONFIG: Final = re.compile(r"certificate-authority|client-(?:key|certificate)-data|current-context")

_PROJECT_KEYS: Final = frozenset({"project", "projectId", "billingProject", "userProject"})
_PROJECT: Final = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_PROJECT_PATH: Final = re.compile(r"(?<![\w-])projects/([a-z][a-z0-9-]{4,28}[a-z0-9])(?=/|$)")
_ACCOUNT: Final = re.compile(r"@([a-z][a-z0-9-]{4,28}[a-z0-9])\.iam\.gserviceaccount\.com")
_POOL: Final = re.compile(r"(?<![\w-])([a-z][a-z0-9-]{4,28}[a-z0-9])\.svc\.id\.goog")
_GOOGLE: Final = re.compile(r"gcp-sa-.*|container-engine-robot|cloud-ml\.google\.com|.*-robot")
"""Projects of Google's own service accounts."""

_UUID: Final = re.compile(
    r"(?i)(?<![0-9a-z])(?<!roleDefinitions/)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])"
)
"""A UUID, but for that of a role: built-in roles have the same in every tenant."""
_EMAIL: Final = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_DOMAIN: Final = re.compile(r"(?<=domain:)[\w-]+(?:\.[\w-]+)+")
_TENANT: Final = re.compile(r"(?<![\w.-])[\w-]+(?=\.onmicrosoft\.com)")
_IPV4: Final = re.compile(r"(?<![\w.-])(\d{1,3}(?:\.\d{1,3}){3})(/\d{1,2})?(?![\w.]*\w)")
_IPV6: Final = re.compile(r"(?<![\w:.])([0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7})(/\d{1,3})?(?![\w:])")
_HEX: Final = re.compile(r"(?i)(?<![0-9a-z])(?=[0-9a-f]*\d)[0-9a-f]{20,}(?![0-9a-z])")
_NUMBER: Final = re.compile(r"(?<![\w.])\d{9,22}(?![\w.]*\w)|(?<=service-)\d{9,22}|(?<=-)\d{10,22}(?=\.)")

_PLACEHOLDER: Final = re.compile(
    r"0{8}-0{4}-4000-8000-\d{12}|project-\d+|user-\d+@example\.com|example-\d+(\.com)?|0{8}\d+"
)
_FIRST_ADDRESS: Final = int(ipaddress.IPv4Address("198.18.0.0"))
"""From a block that is reserved for benchmarks (RFC 2544), as 2001:db8:: is for documentation (RFC 3849)."""


class Scrubber:
    """Scrubber of the values of one command. What is scrubbed once stays as it is."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}
        self._secrets: set[str] = set()
        self._projects: dict[str, str] = {}

    def scrub(self, value: Plain, key: str = "") -> Any:
        """Return a value as JSON, without secrets and identifying values.

        Args:
            key: name of the property that has it.
        """
        self._learn(value, key)
        return self._scrubbed(value, key)

    def _learn(self, value: Plain, key: str) -> None:
        """Remember secrets and projects, so that they are also found where they have no mark."""
        if isinstance(value, Secret):
            texts = (leaf for _, leaf in leaves(revealed(value)) if isinstance(leaf, str))
            self._secrets.update(text for text in texts if len(text) >= _SHORTEST_SECRET)
        elif isinstance(value, dict):
            for name, item in value.items():
                self._learn(item, name)
                self._learn(name, "")
        elif isinstance(value, list):
            for item in value:
                self._learn(item, key)
        elif isinstance(value, str):
            if key in _PROJECT_KEYS and _PROJECT.fullmatch(value):
                self._project(value)
            for pattern in (_PROJECT_PATH, _ACCOUNT, _POOL):
                for name in pattern.findall(value):
                    self._project(name)

    def _project(self, name: str) -> None:
        if not _PLACEHOLDER.fullmatch(name) and not _GOOGLE.fullmatch(name):
            self._projects.setdefault(name, f"project-{len(self._projects) + 1}")

    def _scrubbed(self, value: Plain, key: str) -> Any:
        if isinstance(value, Secret):
            return SECRET_TEXT
        if value is UNKNOWN:
            return UNKNOWN_TEXT
        if isinstance(value, dict):
            return {self.text(name): self._scrubbed(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self._scrubbed(item, key) for item in value]
        if isinstance(value, str):
            return SECRET_TEXT if value and _SECRET_KEY.search(key) else self.text(value)
        return value

    def text(self, text: str) -> str:
        """Return a text without secrets and identifying values."""
        if len(_KUBECONFIG.findall(text)) > 1:
            return "[kubeconfig]"
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, SECRET_TEXT)
        for pattern, word in _REMOVED:
            text = pattern.sub(word, text)
        for name in sorted(self._projects, key=len, reverse=True):
            text = re.sub(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", self._projects[name], text)
        for pattern, replace in self._rules():
            text = pattern.sub(replace, text)
        return text

    def _rules(self) -> Iterator[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        """Yield patterns of identifying values, the most specific first."""
        yield _UUID, partial(self._numbered, "uuid", "00000000-0000-4000-8000-{:012d}".format)
        yield _EMAIL, self._email
        yield _DOMAIN, partial(self._numbered, "domain", "example-{}.com".format)
        yield _TENANT, partial(self._numbered, "tenant", "example-{}".format)
        yield _BASE64, _opaque
        yield _IPV4, self._ipv4
        yield _IPV6, self._ipv6
        for kind, pattern in (("hex", _HEX), ("number", _NUMBER)):
            yield pattern, partial(self._padded, kind)

    def _number(self, kind: str, value: str) -> int:
        numbers = self._numbers.setdefault(kind, {})
        return numbers.setdefault(value.lower(), len(numbers) + 1)

    def _numbered(self, kind: str, placeholder: Callable[[int], str], match: re.Match[str]) -> str:
        if _PLACEHOLDER.fullmatch(match[0]):
            return match[0]
        return placeholder(self._number(kind, match[0]))

    def _padded(self, kind: str, match: re.Match[str]) -> str:
        if match[0].startswith("0" * 8):
            return match[0]
        return str(self._number(kind, match[0])).zfill(len(match[0]))

    def _email(self, match: re.Match[str]) -> str:
        if match[0].endswith(".gserviceaccount.com"):
            return match[0]  # names of resources, of Google, or of a project, which is scrubbed elsewhere
        return self._numbered("user", "user-{}@example.com".format, match)

    def _ipv4(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.IPv4Address(match[1])
        except ValueError:
            return match[0]
        prefix = match[2] or ""
        if not address.is_global:
            return match[0]
        number = self._number("ipv4", match[1])
        if not prefix or int(prefix[1:]) == address.max_prefixlen:
            return f"{ipaddress.IPv4Address(_FIRST_ADDRESS + number)}{prefix}"
        network = ipaddress.IPv4Network((_FIRST_ADDRESS + (number << 8), int(prefix[1:])), strict=False)
        return str(network)

    def _ipv6(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.IPv6Address(match[1])
        except ValueError:
            return match[0]
        if not address.is_global:
            return match[0]
        return f"2001:db8::{self._number('ipv6', match[1]):x}{match[2] or ''}"


def _opaque(match: re.Match[str]) -> str:
    """Return a placeholder for keys and certificates in base64; words and paths are kept."""
    text = match[0]
    counts = sum(map(str.isdigit, text)), sum(map(str.isupper, text)), sum(map(str.islower, text))
    is_random = counts[0] >= _DIGITS and counts[1] >= _CAPITALS and counts[2] >= _CAPITALS
    return "[opaque]" if text.endswith("=") or (len(text) >= _LONG and is_random) else text
