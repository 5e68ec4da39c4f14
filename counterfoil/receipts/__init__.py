"""Receipts: one decision with every input, every rejection as a sentence, and the choice (design section 9).

Pure: bytes in, values out. Files are the business of `counterfoil.receipt_store`.
"""

from counterfoil.receipts.canonical import MAX_BYTES, canonical, digest, digest_of
from counterfoil.receipts.model import (
    CONTRACTS,
    Policy,
    Receipt,
    ReceiptError,
    Request,
    Skipped,
    build,
    policy_name,
    replay,
)
from counterfoil.receipts.parse import from_document, parse, verify

__all__ = [
    "CONTRACTS",
    "MAX_BYTES",
    "Policy",
    "Receipt",
    "ReceiptError",
    "Request",
    "Skipped",
    "build",
    "canonical",
    "digest",
    "digest_of",
    "from_document",
    "parse",
    "policy_name",
    "replay",
    "verify",
]
