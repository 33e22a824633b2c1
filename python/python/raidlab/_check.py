"""Arguments that are of the wrong kind."""

from __future__ import annotations

from ._raidlab import InputError


def text(name: str, value: object) -> None:
    """Whether it is text that can leave Python."""
    if not isinstance(value, str):
        raise InputError(f"{name}: {value!r} is no text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: half of a pair of surrogates is no text") from error


def whole(name: str, value: object, least: int, most: int) -> None:
    """Whether it is a whole number from `least` to `most`, or none."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{name}: {value!r} is not a whole number from {least} to {most}")


def called(name: str, value: object) -> None:
    """Whether it can be called, or is none."""
    if value is not None and not callable(value):
        raise InputError(f"{name}: {value!r} cannot be called")
