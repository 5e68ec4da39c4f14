"""Small disks that can be filled: a tmpfs where this user may mount one."""

import os
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path


class Filler:
    """Fills a disk to its last byte when it is called."""

    def __init__(self, folder):
        self._path = folder / "filler"

    def __call__(self):
        with suppress(OSError), self._path.open("wb", buffering=0) as file:
            while file.write(b"\0" * 4096):
                pass

    def undo(self):
        self._path.unlink()


@contextmanager
def small_disk(folder, size):
    """A file system of so many bytes at the folder; gives what fills it."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True, capture_output=True)
    try:
        yield Filler(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True, capture_output=True)


@cache
def mountable():
    """Tell whether this user may mount one."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder, "disk"), 2**16):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False
