"""A trace file as blocks of whole lines, plain or compressed, with its progress."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from calculators.traces.formats import TraceError

Progress = Callable[[float], None]

BLOCK_BYTES = 8 * 2**20
_LONGEST_LINE = 64 * 2**20
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_OTHER_KINDS = (
    (b"PK\x03\x04", "This is a ZIP archive or an Excel workbook: unpack it, or save it as CSV."),
    (b"PAR1", "This is a Parquet file: save it as CSV or as JSON lines."),
    (b"%PDF", "This is a PDF document, not a trace."),
    (b"\x89PNG", "This is a picture, not a trace."),
    (b"\xff\xd8\xff", "This is a picture, not a trace."),
    (b"\x28\xb5\x2f\xfd", "This file is compressed with Zstandard: unpack it, or compress it with gzip."),
    (b"BZh", "This file is compressed with bzip2: unpack it, or compress it with gzip."),
    (b"\xfd7zXZ", "This file is compressed with xz: unpack it, or compress it with gzip."),
    (b"\xff\xfe", "This text is in UTF-16: save it as UTF-8."),
    (b"\xfe\xff", "This text is in UTF-16: save it as UTF-8."),
)


def line_blocks(source: Path | str | BinaryIO, progress: Progress | None, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    r"""Yield the file in blocks that end with a line.

    Parameters
    ----------
    source
        Path, or a binary file that can be rewound.
    progress
        Called before each block with the share of the file that is read, and with 1 at the end.
    size
        Bytes of a block, about [B].

    Raises
    ------
    TraceError
        If it is empty, of another kind, or damaged.

    Examples
    --------
    >>> list(line_blocks(io.BytesIO(b"a,b\n1,2\n3,4"), None, size=5))
    [b'a,b\n', b'1,2\n', b'3,4']
    """
    with _opened(source) as file:
        total = file.seek(0, io.SEEK_END)
        file.seek(0)
        first = file.read(2)
        file.seek(0)
        stream = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if first == _GZIP else file
        for number, block in enumerate(_whole_lines(stream, size)):
            if progress is not None:
                progress(min(file.tell() / total, 1.0))
            yield block.removeprefix(_BOM) if number == 0 else block
    if progress is not None:
        progress(1.0)


@contextmanager
def _opened(source: Path | str | BinaryIO) -> Iterator[BinaryIO]:
    if not isinstance(source, str | Path):
        yield source
        return
    try:
        file = Path(source).open("rb")  # noqa: SIM115 - closed below; only opening is guarded
    except OSError as error:
        raise TraceError(f"The file {source} cannot be read: {error.strerror}.") from error
    with file:
        yield file


def _whole_lines(stream: BinaryIO, size: int) -> Iterator[bytes]:
    rest = b""
    json_lines = None
    while piece := _read(stream, size):
        if json_lines is None:
            _check_kind(piece)
            json_lines = piece.removeprefix(_BOM).lstrip().startswith(b"{")
        rest += piece
        end = rest.rfind(b"\n") + 1 if json_lines else _last_line_end(rest)
        if end:
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > max(_LONGEST_LINE, size):
            raise TraceError(
                f"A line is longer than {_LONGEST_LINE >> 20} MiB: this is no trace of one request a line."
            )
    if rest:
        yield rest


def _last_line_end(block: bytes) -> int:
    """Return where the last line of CSV ends that is not inside quotes; where all seem to be, the last one."""
    last = end = block.rfind(b"\n") + 1
    quotes = block.count(b'"', 0, end)
    while end and quotes % 2:
        before = block.rfind(b"\n", 0, end - 1) + 1
        quotes -= block.count(b'"', before, end)
        end = before
    return end or last


def _read(stream: BinaryIO, size: int) -> bytes:
    try:
        return stream.read(size)
    except EOFError as error:
        raise TraceError("The compressed file ends in the middle: it was not copied or written completely.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"The compressed file is damaged ({error}).") from error


def _check_kind(block: bytes) -> None:
    for start, sentence in _OTHER_KINDS:
        if block.startswith(start):
            raise TraceError(sentence)
    if b"\x00" in block[:4096]:
        raise TraceError("This is not a text file. A trace is CSV or JSON lines, plain or compressed with gzip.")
