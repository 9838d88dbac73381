"""What a page's content policy must be, read from the built page and not from what writes it."""

from __future__ import annotations

import base64
import hashlib
from html.parser import HTMLParser

SITE = {"'self'", "file:"}
# Directives that name what lies inside the page by hash, and what else they may allow.
HASHED = {"script-src": SITE | {"'wasm-unsafe-eval'"}, "style-src-elem": SITE}
EXPECTED = {
    "default-src": "'self'",
    "style-src": "'self' file: 'unsafe-inline'",
    "style-src-attr": "'unsafe-inline'",
    "img-src": "'self' file: data:",
    "font-src": "'self' file:",
    "connect-src": "'self'",
    "worker-src": "'self'",
    "form-action": "'self' file:",
    "frame-src": "'none'",
    "object-src": "'none'",
    "base-uri": "'none'",
}
ADDRESSES = {"href", "src", "action", "formaction", "xlink:href", "data"}


class Reader(HTMLParser):
    """Collects policies, and what a policy is about, from a page."""

    def __init__(self) -> None:
        super().__init__()
        self.policies: list[str] = []
        self.faults: list[str] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a policy, or what a policy forbids in any case."""
        values = {name: value or "" for name, value in attrs}
        if tag == "meta" and values.get("http-equiv", "").lower() == "content-security-policy":
            self.policies.append(values.get("content", ""))
        self.faults += [f"handler {name} inside <{tag}>" for name in values if name[:2] == "on"]
        for name in ADDRESSES & set(values):
            if values[name].strip().lower().startswith("javascript:"):
                self.faults.append(f"script as the address of <{tag}>")
        if tag in ("script", "style", "link") and not self.policies:
            self.faults.append(f"<{tag}> before the content policy")
        if tag in self.inside and not values.get("src"):
            self.open = tag
            self.inside[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        """A script or style sheet is complete."""
        self.open = "" if tag == self.open else self.open

    def handle_data(self, data: str) -> None:
        """Keep the text of a script or style sheet."""
        if self.open:
            self.inside[self.open][-1] += data


def rules(policy: str) -> dict[str, list[str]]:
    """Sources by directive; the first of two equal names counts, as in a browser."""
    found: dict[str, list[str]] = {}
    for part in policy.split(";"):
        name, *sources = part.split() or [""]
        found.setdefault(name, sources)
    return found


def hashed(text: str) -> str:
    """The source that names a script or style sheet by its text."""
    digest = hashlib.sha256(text.replace("\r\n", "\n").encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def policy_faults(text: str) -> list[str]:
    """Everything wrong with a page's policy, and all that breaks under it."""
    reader = Reader()
    reader.feed(text)
    if len(reader.policies) != 1:
        return [f"{len(reader.policies)} content policies, expected 1"]
    policy = rules(reader.policies[0])
    found = reader.faults
    for name, value in EXPECTED.items():
        received = " ".join(policy.get(name, ["nothing"]))
        if received != value:
            found.append(f"content policy: {name}: expected {value}, received {received}")
    # One more could loosen another: script-src-elem counts before script-src.
    for name in policy.keys() - EXPECTED.keys() - HASHED.keys() - {""}:
        found.append(f"content policy: {name} is not expected")
    for (name, allowed), tag in zip(HASHED.items(), ("script", "style"), strict=True):
        sources = policy.get(name, ["anything"])
        named = {hashed(inside) for inside in reader.inside[tag]}
        found += [
            f"content policy: {name} allows {source}"
            for source in sources
            if source not in allowed | named
        ]
        found += [
            f"content policy: blocks <{tag}> {inside.strip()[:40]!r}"
            for inside in reader.inside[tag]
            if hashed(inside) not in sources
        ]
    return found
