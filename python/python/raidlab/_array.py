"""Arrays of Linux md as files that are only read."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import NoReturn

from . import _raidlab
from ._raidlab import InputError


def open_array(paths: Iterable[str | os.PathLike[str]]) -> Array:
    """Open an array of Linux md by its members, files or devices, for reading.

    Members may be missing as far as the level survives it; nothing is written. Gives a file object.
    """
    if isinstance(paths, (str, bytes, os.PathLike)) or not isinstance(paths, Iterable):
        raise InputError("open_array takes a list of members")
    members = []
    for path in paths:
        if not isinstance(path, (str, os.PathLike)):
            raise InputError(f"{path!r} is no path of a member")
        members.append(os.fspath(path))
    return Array(_raidlab.ArrayFile(members))


class Array(io.RawIOBase):
    """The contents of an array as a file that is only read; ``io.BufferedReader(array)`` reads ahead."""

    def __init__(self, array: _raidlab.ArrayFile) -> None:
        self._array: _raidlab.ArrayFile | None = array
        self._at = 0
        #: Its name and layout.
        self.title = array.title
        #: Members that are missing or left out, and why.
        self.without = array.without
        #: How many bytes it holds.
        self.size = array.size

    def close(self) -> None:
        """Closes the members."""
        self._array = None
        super().close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._open()
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}
        if whence not in start:
            raise ValueError(f"whence {whence}")
        if start[whence] + offset < 0:
            raise ValueError("before the beginning")
        self._at = start[whence] + offset
        return self._at

    def tell(self) -> int:
        self._open()
        return self._at

    def write(self, data: object, /) -> NoReturn:
        raise io.UnsupportedOperation("arrays are only read")

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        view = memoryview(buffer).cast("B")
        data = self._piece(len(view), self._at)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def pread(self, length: int, offset: int) -> bytes:
        """Some bytes from a place on; fewer at the end. Takes no notice of where the file is."""
        if length < 0 or offset < 0:
            raise ValueError("a negative length or offset")
        pieces: list[bytes] = []
        while True:
            piece = self._piece(length, offset)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            length, offset = length - len(piece), offset + len(piece)

    def _open(self) -> _raidlab.ArrayFile:
        if self._array is None:
            raise ValueError("the array is closed")
        return self._array

    def _piece(self, length: int, offset: int) -> bytes:
        array = self._open()
        if offset >= self.size:
            return b""
        return array.read_at(offset, min(length, self.size - offset))
