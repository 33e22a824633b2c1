import io
import json
import os
import subprocess

import pytest

import raidlab

CHUNK = 64 << 10


@pytest.fixture
def members(tmp_path, program):
    """A raid0 of two members whose every byte is known."""
    paths = [tmp_path / "a.img", tmp_path / "b.img"]
    for path in paths:
        with open(path, "wb") as file:
            file.truncate(24 << 20)
    names = [str(path) for path in paths]
    create = [program, "array", "create", "raid0 chunk=64K", *names, "--data-offset", "1MiB", "--name", "data"]
    subprocess.run(create, check=True, capture_output=True)
    data = os.urandom(8 * CHUNK)
    for at, path in enumerate(paths):
        with open(path, "r+b") as file:
            file.seek(1 << 20)
            for chunk in range(at, 8, 2):
                file.write(data[chunk * CHUNK : (chunk + 1) * CHUNK])
    return paths, data


def test_an_array_is_a_file(members):
    paths, data = members
    before = [path.read_bytes() for path in paths]
    with raidlab.open_array(reversed(paths)) as array:
        assert "raid0(2)" in array.title and array.without == []
        assert array.read(100) == data[:100]
        assert array.pread(3 * CHUNK, 12345) == data[12345 : 12345 + 3 * CHUNK]
        assert array.seek(-10, io.SEEK_END) == array.size - 10
        assert array.read() == bytes(10) and array.read(1) == b""
        assert array.pread(5, array.size + 7) == array.pread(5, 10**30) == b""
        assert len(array.pread(10**15, array.size - 5)) == 5
        assert not array.writable()
        with pytest.raises(io.UnsupportedOperation):
            array.write(b"x")
        array.seek(0)
        assert io.BufferedReader(array).read(len(data)) == data
    for after in (lambda: array.read(1), lambda: array.pread(1, 0), array.tell):
        with pytest.raises(ValueError):
            after()
    assert before == [path.read_bytes() for path in paths]


def test_what_is_no_array_is_refused(members, tmp_path):
    paths, _ = members
    with pytest.raises(raidlab.RaidlabError, match="cannot be read without"):
        raidlab.open_array(paths[:1])
    with pytest.raises(raidlab.InputError, match="a list of members"):
        raidlab.open_array(str(paths[0]))
    with pytest.raises(raidlab.InputError, match="no members"):
        raidlab.open_array([])
    with pytest.raises(raidlab.RaidlabError, match="none.img"):
        raidlab.open_array([tmp_path / "none.img"])
    with pytest.raises(raidlab.InputError, match="5 is no path"):
        raidlab.open_array([5])
    with pytest.raises(raidlab.InputError, match="a list of members"):
        raidlab.open_array(5)
    with pytest.raises(ValueError):
        raidlab.open_array(paths).pread(-1, 0)
