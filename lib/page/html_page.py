"""One self-contained HTML page from a template and data: it loads nothing, and runs its own script
only."""

import base64
import hashlib
import json
import re
from pathlib import Path


def html_page(template: str | Path, data: object, **parts: str) -> str:
    """Fill a template file.

    [DATA] becomes the data as JSON, [NAME] the part of that name, and [HASH] the digest of the
    page's script for its Content-Security-Policy. No text in the data can end its script element or
    begin a comment.
    """
    content = json.dumps(data, separators=(",", ":"))  # ASCII: everything else is escaped
    for sign in "<>&":
        content = content.replace(sign, f"\\u{ord(sign):04x}")
    parts = {**parts, "DATA": content}
    page = Path(template).read_text(encoding="utf-8")
    # All at once: a text that is put in may hold such a name.
    name = "|".join(parts)
    page = re.sub(rf"\[({name})\]", lambda found: parts[found[1]], page)
    if code := re.search(r"<script>(.*)</script>", page, re.DOTALL):
        digest = hashlib.sha256(code[1].encode()).digest()
        page = page.replace("[HASH]", f"sha256-{base64.b64encode(digest).decode()}", 1)
    return page
