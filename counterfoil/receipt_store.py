"""Receipts as files: `<home>/receipts/<digest without 0x>.json`, written whole or not at all."""

import re
from collections.abc import Iterator
from pathlib import Path

from counterfoil.files import write_whole
from counterfoil.receipts import MAX_BYTES, Receipt, ReceiptError, canonical, digest_of, verify
from indexer.errors import UserError

_DIGEST = re.compile(r"0x[0-9a-f]{64}")


class ReceiptStore:
    """A folder of receipts, each under its digest. Nothing is read or made before it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, receipt: Receipt) -> str:
        """Write a receipt, unless it is there, and give its digest. Raises UserError if that fails."""
        data = canonical(receipt)
        digest = digest_of(data)
        self.write(digest, data, over=False)
        return digest

    def write(self, digest: str, data: bytes, *, over: bool = True) -> None:
        """Write bytes under their digest, `over` what may be there. Raises UserError if that fails."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if over or not self.path(digest).exists():
                write_whole(self.path(digest), data)
        except OSError as error:
            raise UserError(
                f"The receipt cannot be written to {self.folder} ({error.strerror}): make it writable."
            ) from error

    def path(self, digest: str) -> Path:
        """Where the receipt of a digest is. Raises UserError for what is no digest."""
        if not _DIGEST.fullmatch(digest):
            raise UserError(f"{digest[:80]!r} is no digest: give 0x and 64 lower-case hexadecimal digits.")
        return self.folder / f"{digest[2:]}.json"

    def read(self, digest: str) -> bytes | None:
        """The bytes under a digest, unchecked, or None. Raises UserError for a file that is too large."""
        path = self.path(digest)
        return read_bounded(path) if path.is_file() else None

    def load(self, digest: str) -> Receipt:
        """Read and verify a receipt. Raises UserError when it is missing, changed, cut or another's."""
        data = self.read(digest)
        if data is None:
            raise UserError(
                f"There is no receipt {digest} in {self.folder}: "
                "ask the session's client for the file and put it there."
            )
        try:
            return verify(data, digest)
        except ReceiptError as error:
            raise UserError(f"The receipt {self.path(digest)} is not what its name says: {error}.") from error

    def digests(self) -> Iterator[str]:
        """Every digest there is a file for, ascending."""
        for path in sorted(self.folder.glob("*.json")):
            if _DIGEST.fullmatch(f"0x{path.stem}"):
                yield f"0x{path.stem}"


def read_bounded(path: Path) -> bytes:
    """Read a file no larger than a receipt can be. Raises UserError when it cannot be read or is larger."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): check the path and its permissions.") from error
    if len(data) > MAX_BYTES:
        raise UserError(f"{path} is larger than any receipt ({MAX_BYTES} bytes): check that it is the right file.")
    return data
