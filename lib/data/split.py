"""Encoded documents of one split: in memory, or mapped from files so that a corpus of any size trains in little."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from lib.data.batch import EncodedDocument
from lib.system.files import to_disk, write_whole

ARRAYS = ("source", "sentence_lengths", "target", "source_ids", "graph", "labels")
FLOATS = ("graph", "labels")
_KINDS = ("|u1", "<u2", "<i4", "<f4")  # of the numbers in the files


class Split(Sequence):
    """Flat arrays, and where each document's part of them ends."""

    def __init__(self, arrays: dict[str, np.ndarray], counts: dict[str, np.ndarray]):
        """A split of flat arrays. arrays: of each of `ARRAYS` that there are, and of the texts, as bytes; counts:
        [documents] of each."""
        self._arrays, self._counts = arrays, counts
        self._ends = {key: np.append(0, np.cumsum(n, dtype=np.int64)) for key, n in counts.items()}
        self._fingerprint = ""

    @classmethod
    def of(cls, documents: Iterable[EncodedDocument]) -> "Split":
        parts, counts = {"texts": []}, {"texts": []}
        for document in documents:
            for key, values in _parts(document).items():
                parts.setdefault(key, []).append(values)
                counts.setdefault(key, []).append(len(values))
        arrays = {key: _compact(np.concatenate(values)) for key, values in parts.items() if values}
        empty = {key: np.zeros(0, np.uint16) for key in ("source", "sentence_lengths", "target", "texts")}
        numbers = {key: np.array(n, dtype=np.int32) for key, n in counts.items()}
        return cls({**empty, **arrays}, {**{key: np.zeros(0, np.int32) for key in empty}, **numbers})

    def __len__(self) -> int:
        return len(self._counts["texts"])

    @overload
    def __getitem__(self, index: int) -> EncodedDocument: ...

    @overload
    def __getitem__(self, index: slice) -> list[EncodedDocument]: ...

    def __getitem__(self, index: int | slice) -> EncodedDocument | list[EncodedDocument]:
        """A document by index, as of a list: from the end where negative, several for a slice. Raises IndexError
        beyond either end."""
        places = range(len(self))[index]
        return [self._document(i) for i in places] if isinstance(places, range) else self._document(places)

    def _document(self, index: int) -> EncodedDocument:
        own = {key: self._arrays[key][ends[index] : ends[index + 1]] for key, ends in self._ends.items()}
        values: dict[str, Any] = json.loads(own.pop("texts").tobytes())
        values |= {key: part.astype(np.float32 if key in FLOATS else np.int32) for key, part in own.items()}
        return EncodedDocument(**values)

    @property
    def source_lengths(self) -> np.ndarray:
        return self._counts["source"]

    @property
    def target_lengths(self) -> np.ndarray:
        return self._counts["target"]

    @property
    def longest(self) -> int:
        """Words or pieces of the longest source."""
        return int(self.source_lengths.max(initial=0))

    @property
    def sentence_counts(self) -> np.ndarray:
        return self._counts["sentence_lengths"]

    def save(self, folder: Path, name: str) -> None:
        """Write `NAME.KEY.bin`, an array each, and last of all `NAME.safetensors`, how much of them is whose."""
        for key, array in self._arrays.items():
            with open(folder / f"{name}.{key}.bin", "wb") as file:
                file.writelines(_bytes(array))
            to_disk(folder / f"{name}.{key}.bin")
        types = {key: array.dtype.str for key, array in self._arrays.items()}
        write_whole(folder / f"{name}.safetensors", save(self._counts, {"types": json.dumps(types)}))

    @classmethod
    def load(cls, folder: Path, name: str) -> "Split":
        """Map what `save` or `write` wrote from the files. Raises OSError, ValueError or SafetensorError for what
        is missing or damaged."""
        with safe_open(folder / f"{name}.safetensors", "np") as file:
            types = json.loads((file.metadata() or {}).get("types", "null"))
            if not isinstance(types, dict) or not {"source", "sentence_lengths", "target", "texts"} <= types.keys():
                raise ValueError(f"{name}.safetensors does not say what the files beside it hold")
            counts = {key: file.get_tensor(key) for key in types}
        return cls({key: _mapped(folder / f"{name}.{key}.bin", types[key], n) for key, n in counts.items()}, counts)

    @classmethod
    def write(cls, folder: Path, name: str, documents: Iterable[EncodedDocument], most: int) -> "Split":
        """Write documents that come one after the other, without holding them; no id in them is above `most`."""
        counts: dict[str, list[int]] = {key: [] for key in ("source", "sentence_lengths", "target", "texts")}
        types = {"texts": "|u1", **dict.fromkeys(FLOATS, "<f4")}
        files = {}
        try:
            for document in documents:
                for key, values in _parts(document).items():
                    kind = types.setdefault(key, "<u2" if most < 2**16 else "<i4")
                    if key not in files:
                        files[key] = open(folder / f"{name}.{key}.bin", "wb")  # noqa: SIM115
                    values.astype(kind).tofile(files[key])
                    counts.setdefault(key, []).append(len(values))
        finally:
            for file in files.values():
                file.close()
        for key in counts.keys() - files.keys():
            (folder / f"{name}.{key}.bin").touch()
        types = {key: types.get(key, "<u2") for key in counts}
        numbers = {key: np.array(n, dtype=np.int32) for key, n in counts.items()}
        write_whole(folder / f"{name}.safetensors", save(numbers, {"types": json.dumps(types)}))
        return cls.load(folder, name)

    def fingerprint(self) -> str:
        """Hash of every id and text."""
        self._fingerprint = self._fingerprint or self._hash()
        return self._fingerprint

    def _hash(self) -> str:
        sha = hashlib.sha256()
        for key in sorted(self._arrays.keys() - {"texts"}):
            for part in _bytes(self._arrays[key]):
                sha.update(part)
            sha.update(self._counts[key].tobytes())
        for part in _bytes(self._arrays["texts"]):
            sha.update(part)
        return sha.hexdigest()[:12]


def _parts(document: EncodedDocument) -> dict[str, np.ndarray]:
    """Arrays of what is saved of a document."""
    texts = {"id": document.id, "unknown": document.unknown, "reference": document.reference}
    if document.tokenised:  # said where it is so: what was saved before stays as it is
        texts["tokenised"] = True
    parts = {key: getattr(document, key) for key in ARRAYS if getattr(document, key) is not None}
    return {**parts, "texts": np.frombuffer(json.dumps(texts, ensure_ascii=False).encode(), np.uint8)}


def _compact(values: np.ndarray) -> np.ndarray:
    """Values in as few bytes as hold them."""
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    if values.dtype == np.uint8:
        return values
    return values.astype(np.uint16 if values.max(initial=0) < 2**16 else np.int32)


def _mapped(path: Path, kind: str, counts: np.ndarray) -> np.ndarray:
    size, there = int(counts.sum(dtype=np.int64)), path.stat().st_size
    if kind not in _KINDS:
        raise ValueError(f"{path.name} would hold numbers of the kind {kind!r}")
    if there != size * np.dtype(kind).itemsize:
        raise ValueError(f"{path.name} has {there} bytes and should have {size * np.dtype(kind).itemsize}")
    return np.memmap(path, kind, "r") if size else np.zeros(0, kind)


def _bytes(array: np.ndarray, size: int = 2**24) -> Iterator[bytes]:
    """An array's bytes, a few at a time; of a mapped file read from there, so that none of it stays in memory."""
    path = Path(str(getattr(array, "filename", "")))
    if not path.is_file():  # in memory, or mapped from a file that was deleted since
        for start in range(0, len(array), size):
            yield array[start : start + size].tobytes()
        return
    with open(path, "rb") as file:
        while part := file.read(size):
            yield part
