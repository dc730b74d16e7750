"""Folders of the project, and files that are written whole or not at all."""

import hashlib
import json
import os
from pathlib import Path


def project_root() -> Path:
    """The folder that holds `lib`: pages run from anywhere, so they never use relative paths."""
    return Path(__file__).resolve().parent.parent


def cache_dir() -> Path:
    """Where prepared corpora are kept: the environment variable COMPANION_CACHE, or `cache` in the project."""
    return Path(os.environ.get("COMPANION_CACHE") or project_root() / "cache")


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write `content` under a temporary name, then put it in place: a reader never sees half a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def write_json(path: str | Path, value) -> Path:
    return write_whole(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def digest(value, length: int = 12) -> str:
    """A short, stable name of anything that json can write."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:length]


def source_digest(*folders: str) -> str:
    """A short name of the code in these files and folders of `lib`: what other code made is not reused."""
    root = Path(__file__).resolve().parent
    paths = [p for f in folders for p in ([root / f] if (root / f).is_file() else sorted((root / f).rglob("*.py")))]
    return digest([p.read_text() for p in paths])
