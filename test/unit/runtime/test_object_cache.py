import logging
import os
import subprocess
import sys
import time

import pytest

from mlir_npu import logs
from mlir_npu.runtime.object_cache import VARIABLE, ObjectCache, default_cache

KEYS = ["ab" + str(i) * 62 for i in range(8)]


@pytest.fixture
def cache(tmp_path) -> ObjectCache:
    return ObjectCache(tmp_path)


def only_entry(cache: ObjectCache):
    (path,) = cache.folder.glob("*/*")
    return path


def test_keeps_bytes_by_key(cache):
    assert cache.get(KEYS[0]) is None
    cache.put(KEYS[0], b"code")
    cache.put(KEYS[1], b"")
    assert (cache.get(KEYS[0]), cache.get(KEYS[1])) == (b"code", b"")


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:-1] + b"?", lambda data: b""]
)
def test_damaged_entry_is_said_and_made_again(cache, caplog, damage):
    cache.put(KEYS[0], b"code")
    path = only_entry(cache)
    path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert cache.get(KEYS[0]) is None
    assert "is damaged and is made again" in caplog.text
    assert not path.exists()
    cache.put(KEYS[0], b"code")
    assert cache.get(KEYS[0]) == b"code"


def test_what_was_not_used_for_longest_goes(tmp_path):
    cache = ObjectCache(tmp_path, limit=1000)
    for age, key in enumerate(reversed(KEYS[:4])):
        cache.put(key, bytes(200))
        os.utime(cache._path(key), (1000 + age, 1000 + age))
    assert cache.get(KEYS[3]) is not None  # the oldest is used again
    cache.put(KEYS[4], bytes(200))
    kept = {key for key in KEYS if cache.get(key) is not None}
    assert kept == {KEYS[0], KEYS[3], KEYS[4]}


def test_clean_up_takes_what_dead_writers_left_and_no_more(tmp_path):
    old, new = tmp_path / "ab" / "tmp_old", tmp_path / "ab" / "tmp_new"
    old.parent.mkdir()
    for path in (old, new):
        path.write_bytes(b"half an ent")
    os.utime(old, (0, 0))
    ObjectCache(tmp_path).put(KEYS[0], b"code")
    assert (old.exists(), new.exists()) == (False, True)


def test_folder_that_cannot_be_written_is_said_once(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    logs._told.clear()
    for _ in range(2):
        cache = ObjectCache(tmp_path / "file" / "cache")
        cache.put(KEYS[0], b"code")
        cache.put(KEYS[1], b"code")
        assert cache.get(KEYS[0]) is None
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert len([r for r in warnings if "so nothing is kept" in r.getMessage()]) == 1


def test_environment_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "here"))
    assert default_cache().folder == tmp_path / "here"
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert default_cache().folder == tmp_path / "user" / "mlir_npu"


WRITER = """
import sys
from pathlib import Path
from mlir_npu.runtime.object_cache import ObjectCache
cache = ObjectCache(Path(sys.argv[1]), limit=400_000)
for turn in range(150):
    key = f"{turn % 7:064d}"
    found = cache.get(key)
    assert found is None or found == key.encode() * 1000, "half an entry was seen"
    cache.put(key, key.encode() * 1000)
assert cache._writable
"""


def test_processes_share_a_folder(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    errors = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0], errors
    assert "damaged" not in "".join(errors)
    assert not [p for p in tmp_path.glob("*/*") if p.suffix != ".bin"]


def test_use_counts_as_recent(cache):
    cache.put(KEYS[0], b"code")
    path = only_entry(cache)
    os.utime(path, (0, 0))
    cache.get(KEYS[0])
    assert path.stat().st_mtime > time.time() - 60
