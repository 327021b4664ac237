"""What was compiled, kept on disk for the next process: bytes by key.

MLIR_NPU_CACHE_DIR names the folder; the default is the user's cache folder. Deleting it, or any
file in it, is safe at any time. Keys say all that the bytes depend on (see `toolchain`), so nothing
is ever out of date; what was not used for longest goes when the folder grows over its limit.

An entry is written under a temporary name and then renamed, so that processes see whole ones only,
and starts with a checksum, so that a damaged one is found out and made again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import tempfile
import time
from pathlib import Path

from mlir_npu.logs import warn_once

VARIABLE = "MLIR_NPU_CACHE_DIR"
LIMIT = 512 << 20  # bytes
_KEEP = 0.75  # of the limit, after a clean-up
_STALE_SECONDS = 3600  # age of a temporary file whose writer must be dead
_SUFFIX = ".bin"

logger = logging.getLogger("mlir_npu.cache")


class ObjectCache:
    """A folder of entries. Any number of processes and threads may use it at once."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self._limit = limit
        self._unchecked = limit  # bytes written since the size of the folder was last looked at
        self._writable = True

    def get(self, key: str) -> bytes | None:
        """None if there is no entry, or a damaged one."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            warn_once(logger, f"read {self.folder}", f"cannot read the cache: {error}")
            return None
        digest, contents = data[:32], data[32:]
        if hashlib.sha256(contents).digest() != digest:
            logger.warning("the cache entry %s is damaged and is made again", path)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used now
        return contents

    def put(self, key: str, contents: bytes) -> None:
        """Keep an entry. Where the folder cannot be written, warn once and go on without."""
        if not self._writable:
            return
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write(path, hashlib.sha256(contents).digest() + contents)
        except OSError as error:
            self._writable = False
            message = f"cannot write the cache in {self.folder}, so nothing is kept: {error}"
            warn_once(logger, f"write {self.folder}", message)
            return
        self._unchecked += len(contents)
        if self._unchecked > self._limit / 16:
            self._unchecked = 0
            self._evict()

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / (key + _SUFFIX)

    def _write(self, path: Path, data: bytes) -> None:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            try:
                file.write(data)
                file.close()
                os.replace(file.name, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(file.name)
                raise

    def _evict(self) -> None:
        """Delete the entries used longest ago, and what dead writers left."""
        entries = []
        for path in self.folder.glob("*/*"):
            with contextlib.suppress(OSError):  # another process may delete as well
                status = path.stat()
                if path.suffix == _SUFFIX:
                    entries.append((status.st_mtime_ns, status.st_size, path))
                elif status.st_mtime < time.time() - _STALE_SECONDS:
                    path.unlink()
        total = sum(size for _, size, _ in entries)
        if total <= self._limit:
            return
        for _, size, path in sorted(entries):
            if total <= self._limit * _KEEP:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


@functools.cache
def _cache_in(folder: str) -> ObjectCache:
    return ObjectCache(Path(folder))


def default_cache() -> ObjectCache:
    """The cache that the environment names."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        import platformdirs

        folder = platformdirs.user_cache_dir("mlir_npu", appauthor=False)
    return _cache_in(folder)
