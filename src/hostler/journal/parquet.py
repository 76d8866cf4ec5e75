"""One day of raw observations as a Parquet file that DuckDB, pandas or Spark opens."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from hostler.journal import whole_files
from hostler.journal.codec import unseal_observation
from hostler.ports import JournalError

ROWS_AT_ONCE = 20_000

COLUMNS = pa.schema(
    [
        pa.field("received", pa.timestamp("us", tz="UTC")),
        pa.field("node", pa.string(), nullable=False),
        pa.field("source", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("boot_id", pa.string()),
        pa.field("spool", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("facility", pa.int64()),
        pa.field("facts", pa.string()),
        pa.field("body", pa.string(), nullable=False),
    ]
)
"""`facts` and `body`, the whole observation as it was stored, are JSON. (node, spool, sequence) is its identity."""

_IDENTITY = ["node", "spool", "sequence"]


class DayFile:
    """Collects the rows of one day. A file that is there already is taken over; what it holds is not added again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[dict[str, Any]] = []
        self._count = 0
        self._known: set[tuple[str, str, int]] = set()
        self._writer = pq.ParquetWriter(whole_files.unfinished(path), COLUMNS, compression="zstd")
        if path.exists():
            self._take_over()

    def add(self, row: Any) -> None:
        """Add a row of the table `observations`, unless the file holds it."""
        if (row.node, row.spool, row.sequence) in self._known:
            return
        self._rows.append(_values(row))
        if len(self._rows) == ROWS_AT_ONCE:
            self._flush()

    def finish(self) -> None:
        """Put the file in its place, on the disk, and count what is in it. Raises JournalError for another count."""
        self._flush()
        self._writer.close()
        whole_files.publish(self._path)
        if (found := pq.ParquetFile(self._path).metadata.num_rows) != self._count:
            raise JournalError(
                f"{self._path} holds {found} observations instead of {self._count}: they are kept"
                "; move the file away and try again"
            )

    def _take_over(self) -> None:
        try:
            old = pq.ParquetFile(self._path)
            for batch in old.iter_batches(ROWS_AT_ONCE):
                self._write(pa.Table.from_batches([batch]).cast(COLUMNS))
                columns = [batch.column(name).to_pylist() for name in _IDENTITY]
                self._known.update(zip(*columns, strict=True))
        except (pa.ArrowException, ValueError) as error:
            raise JournalError(f"{self._path} cannot be read ({error}): move it away and try again") from error

    def _flush(self) -> None:
        if self._rows:
            self._write(pa.Table.from_pylist(self._rows, schema=COLUMNS))
            self._rows = []

    def _write(self, table: pa.Table) -> None:
        self._writer.write_table(table)
        self._count += table.num_rows


def _values(row: Any) -> dict[str, Any]:
    """The columns of a row; an observation that cannot be read keeps its body and its identity."""
    known = {
        "received": row.received or None,
        "node": row.node,
        "spool": row.spool,
        "sequence": row.sequence,
        "body": row.body.decode(errors="replace"),
    }
    try:
        seen = unseal_observation(row.body)
    except JournalError:
        return known
    return known | {
        "source": seen.source,
        "kind": seen.kind,
        "boot_id": seen.boot_id,
        "text": seen.text,
        "facility": seen.facility,
        "facts": msgspec.json.encode(seen.facts).decode(),
    }
