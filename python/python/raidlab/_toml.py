"""Studies as text: paths are read, dicts become TOML."""

from __future__ import annotations

import math
import numbers
import os
from pathlib import Path
from typing import Any, Union

from ._raidlab import InputError

#: A path, or a dict with the keys of a study file.
Study = Union[str, "os.PathLike[str]", dict[str, Any]]


def study_text(study: Study) -> tuple[str, str, str]:
    """The text of a study, what errors call it, and the directory of its drive files.

    ``study`` is a path, or a dict with the keys of a study file.
    """
    if isinstance(study, dict):
        return dumps(study), "study", os.getcwd()
    if isinstance(study, (str, os.PathLike)):
        path = Path(study)
        try:
            return path.read_text(encoding="utf-8"), os.fsencode(path).decode(errors="replace"), str(path.parent)
        except (OSError, ValueError) as error:
            raise InputError(f"{str(path)!r}: cannot read the study file: {error}") from error
    raise InputError(f"a study is a path or a dict, not {type(study).__name__}")


def dumps(table: dict[str, Any]) -> str:
    """A dict as TOML, a line for each key; what TOML has no form for is an error with its key."""
    return "".join(f"{_key(key, '')} = {_value(value, str(key), 0)}\n" for key, value in table.items())


def _value(value: object, where: str, depth: int) -> str:
    if depth > 32:
        raise InputError(f"{where}: is nested too deeply")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value, where)
    # Those of numpy, too.
    if isinstance(value, numbers.Integral):
        number = int(value)
        if not -(2**63) <= number < 2**63:
            raise InputError(f"{where}: {number} has more than 64 bits")
        return str(number)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{where}: {value} is no number")
        return repr(float(value))
    if isinstance(value, os.PathLike):
        return _value(os.fspath(value), where, depth + 1)
    if isinstance(value, dict):
        entries = (f"{_key(key, where)} = {_value(one, f'{where}.{key}', depth + 1)}" for key, one in value.items())
        return "{ " + ", ".join(entries) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(one, f"{where}[{at}]", depth + 1) for at, one in enumerate(value)) + "]"
    raise InputError(f"{where}: {type(value).__name__} is nothing that a study holds")


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise InputError(f"{where}: the key {key!r} is no text")
    return _quoted(key, where)


def _quoted(text: str, where: str) -> str:
    out = []
    for sign in text:
        if 0xD800 <= ord(sign) <= 0xDFFF:
            raise InputError(f"{where}: half of a pair of surrogates is no text")
        if sign in '"\\':
            out.append("\\" + sign)
        elif ord(sign) < 0x20 or ord(sign) == 0x7F:
            out.append(f"\\u{ord(sign):04X}")
        else:
            out.append(sign)
    return '"' + "".join(out) + '"'
