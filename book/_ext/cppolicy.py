"""The content policy of each page: what a browser may load and run there.

It is written last, because a script inside the page is named by the hash of its text. Scripts
come from the site; the few inside a page are the theme's settings. Nothing connects elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

# Opened from disk, a page has no origin that 'self' could mean to every browser. A page that was
# served can load no `file:` address at all, so this gives it nothing.
SITE = "'self' file:"
INLINE = r"<{0}\b(?![^>]*\bsrc=)[^>]*>(.*?)</{0}>"
CHARSET = re.compile(r'<meta charset="utf-8"\s*/?>')


def hashes(text: str, tag: str) -> str:
    """The hashes of every script, or style sheet, inside a page, each after a blank."""
    inside = re.findall(INLINE.format(tag), text, re.DOTALL)
    digests = {base64.b64encode(hashlib.sha256(x.encode()).digest()).decode() for x in inside}
    return "".join(f" 'sha256-{digest}'" for digest in sorted(digests))


def policy(text: str) -> str:
    """The policy for one page in its final form."""
    rules = {
        "default-src": "'self'",
        # Pyodide is WebAssembly.
        "script-src": f"{SITE} 'wasm-unsafe-eval'{hashes(text, 'script')}",
        # KaTeX sets every formula with style attributes. Browsers that do not know the two finer
        # rules need the looser first one.
        "style-src": f"{SITE} 'unsafe-inline'",
        "style-src-elem": SITE + hashes(text, "style"),
        "style-src-attr": "'unsafe-inline'",
        "img-src": f"{SITE} data:",  # the theme's small icons
        "font-src": SITE,
        "connect-src": "'self'",
        "worker-src": "'self'",
        "form-action": SITE,
        "frame-src": "'none'",
        "object-src": "'none'",
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def with_policy(text: str) -> str:
    """A page with its policy, before anything that the policy is about."""
    rule = f'<meta http-equiv="Content-Security-Policy" content="{policy(text)}">'
    return CHARSET.sub(lambda match: f"{match[0]}\n{rule}", text, count=1)


def write_policies(out: Path) -> None:
    """Give every page its policy."""
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(with_policy(text), encoding="utf-8", newline="\n")
