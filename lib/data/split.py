"""Encoded documents of one split in an Arrow file, mapped from disk: a corpus of any size trains in
little memory.

The file is an Arrow stream, which `datasets.Dataset.from_file` opens, too.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lib.data.batch import EncodedDocument
from lib.system.processes import CHUNK, chunked

TEXTS = {
    "id": pa.string(),
    "unknown": pa.list_(pa.string()),
    "reference": pa.list_(pa.string()),
    "tokenised": pa.bool_(),
}
ALWAYS = ("source", "sentence_lengths", "target")
FLOATS = ("graph", "labels")
ARRAYS = (*ALWAYS, "source_ids", *FLOATS)


class Split(Sequence):
    """Documents by index. Their arrays are views of flat values, of the file or in memory."""

    def __init__(self, table: pa.Table, path: Path | None = None, fingerprint: str = ""):
        self.table, self.path, self._fingerprint = table, path, fingerprint
        # number of each chunk's first document
        self._firsts = np.cumsum([0, *map(len, table.column("id").chunks)])
        self._chunks = {
            name: [
                (chunk.values.to_numpy(), chunk.offsets.to_numpy())
                for chunk in table.column(name).chunks
            ]
            for name in ARRAYS
            if name in table.column_names
        }

    @classmethod
    def of(cls, documents: Iterable[EncodedDocument]) -> "Split":
        """A split in memory."""
        documents = list(documents)
        largest = max(
            (int(getattr(d, name).max(initial=0)) for d in documents for name in ALWAYS), default=0
        )
        schema = _schema(documents, largest)
        return cls(pa.Table.from_batches(_batches(documents, schema), schema))

    @classmethod
    def write(
        cls, folder: Path, name: str, documents: Iterable[EncodedDocument], max_id: int
    ) -> "Split":
        """Write documents that come one after the other to `folder`/`name`.arrow; no id in them is
        above `max_id`."""
        documents, path = iter(documents), _path(folder, name)
        first = list(islice(documents, 1))
        schema = _schema(first, max_id)
        with pa.ipc.new_stream(str(path), schema) as writer:
            for batch in _batches(chain(first, documents), schema):
                writer.write_batch(batch)
        return cls.load(folder, name)

    def save(self, folder: Path, name: str) -> None:
        if self.path != (path := _path(folder, name)):
            with pa.ipc.new_stream(str(path), self.table.schema) as writer:
                writer.write_table(self.table)

    @classmethod
    def load(cls, folder: Path, name: str, fingerprint: str = "") -> "Split":
        path = _path(folder, name)
        return cls(pa.ipc.open_stream(pa.memory_map(str(path))).read_all(), path, fingerprint)

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, index: int | slice) -> Any:
        """Return a document, or a list of them."""
        places = range(len(self))[index]
        return (
            [self._document(i) for i in places]
            if isinstance(places, range)
            else self._document(places)
        )

    def _document(self, index: int) -> EncodedDocument:
        chunk = int(np.searchsorted(self._firsts, index, side="right")) - 1
        row = index - self._firsts[chunk]
        values: dict[str, Any] = {
            name: self.table.column(name).chunk(chunk)[row].as_py() for name in TEXTS
        }
        for name, chunks in self._chunks.items():
            flat, ends = chunks[chunk]
            values[name] = flat[ends[row] : ends[row + 1]].astype(
                np.float32 if name in FLOATS else np.int32
            )
        return EncodedDocument(**values)

    def _lengths(self, name: str) -> np.ndarray:
        return np.concatenate(
            [np.zeros(0, np.int32), *(np.diff(ends) for _, ends in self._chunks[name])]
        )

    @property
    def source_lengths(self) -> np.ndarray:
        return self._lengths("source")

    @property
    def target_lengths(self) -> np.ndarray:
        return self._lengths("target")

    @property
    def longest(self) -> int:
        """Words or pieces of the longest source."""
        return int(self.source_lengths.max(initial=0))

    def fingerprint(self) -> str:
        """Hash every id and text. Runs store it, so the bytes stay the same however a split is
        stored."""
        if not self._fingerprint:
            sha = hashlib.sha256()
            for name in sorted(self._chunks):
                for flat, _ in self._chunks[name]:
                    sha.update(flat.tobytes())
                sha.update(self._lengths(name).tobytes())
            for batch in self.table.select(list(TEXTS)).to_batches():
                for texts in batch.to_pylist():
                    if not texts["tokenised"]:
                        del texts["tokenised"]
                    sha.update(json.dumps(texts, ensure_ascii=False).encode())
            self._fingerprint = sha.hexdigest()[:12]
        return self._fingerprint


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.arrow"


def _schema(documents: Sequence[EncodedDocument], max_id: int) -> pa.Schema:
    """Columns of documents like the first one, their ids in two bytes where these are enough."""
    ids = pa.list_(pa.uint16() if max_id < 2**16 else pa.int32())
    names = [
        name
        for name in ARRAYS
        if name in ALWAYS or (documents and getattr(documents[0], name) is not None)
    ]
    kinds = {name: pa.list_(pa.float32()) if name in FLOATS else ids for name in names}
    return pa.schema({**TEXTS, **kinds})


def _batches(documents: Iterable[EncodedDocument], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for chunk in chunked(documents, CHUNK):
        columns = []
        for field in schema:
            values = [getattr(document, field.name) for document in chunk]
            if field.name in TEXTS:
                columns.append(pa.array(values, field.type))
                continue
            flat = pa.array(np.concatenate(values).astype(field.type.value_type.to_pandas_dtype()))
            ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
            columns.append(pa.ListArray.from_arrays(pa.array(ends), flat).cast(field.type))
        yield pa.record_batch(columns, schema=schema)
