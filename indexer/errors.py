"""The two trees of errors (design section 4).

IndexerError
├── RetryableError            the source may recover; the loop backs off and asks again, or asks another source
│   ├── UnavailableError      no answer, or an HTTP status that is not a success
│   ├── RateLimitedError      the source asks for fewer requests
│   ├── RangeTooLargeError    the source asks for a smaller block range
│   ├── BadAnswerError        an answer that is malformed or that nobody can sort
│   │   ├── UnsupportedError  the source does not know the method
│   │   └── LieError          an answer that contradicts itself, its header or another one
│   │       └── HoleError     an answer whose logs are not those that the receipts prove
│   ├── BehindError           the source has not seen a block yet, or its head went down
│   ├── NoHistoryError        the source says that it keeps no such old block
│   ├── ForkError             answers of one round belong to different forks
│   └── StoreUnavailableError the database is locked, restarting, or out of reach
│       └── TooSlowError      a question took the database longer than it may
└── UserError                 the user's to fix; the message names the remedy
    ├── SettingsError, DeploymentError, WrongChainError, ReorgTooDeepError, HistoryPrunedError
    ├── LockedError, StoreError
    ├── ReadOnlyError
    ├── UnknownBlockError
    │   ├── EmptyIndexError   there is no block to answer from
    │   └── ReplacedBlockError a question names a block that a reorg took away
    └── QuestionError
"""


class IndexerError(Exception):
    """Everything the indexer raises on purpose."""


class RetryableError(IndexerError):
    """The source may recover: back off, check the identity again, and retry."""

    wait: float = 0
    """Seconds that the source itself asked to wait, 0 where it asked for nothing."""


class UnavailableError(RetryableError):
    """The source gave no usable HTTP answer."""


class RateLimitedError(RetryableError):
    """The source asked for fewer requests."""


class RangeTooLargeError(RetryableError):
    """The source asked for a smaller block range."""

    blocks: int | None = None
    """How many blocks the source says that it would take, where it says so."""


class BadAnswerError(RetryableError):
    """The source's answer is malformed, or an error that nobody can sort."""


class UnsupportedError(BadAnswerError):
    """The source does not know the method."""


class LieError(BadAnswerError):
    """The source's answer contradicts itself, its own header or another answer: whatever else it says is in doubt."""


class HoleError(LieError):
    """The source's logs are not those that the receipts prove: nothing of the answer is used."""


class BehindError(RetryableError):
    """The source does not hold a block that it should hold; null means not yet."""


class NoHistoryError(RetryableError):
    """The source says that it keeps no such old block; the loop asks again before it believes that."""


class ForkError(RetryableError):
    """Answers of one round belong to different forks: the chain moved in between."""


class StoreUnavailableError(RetryableError):
    """The database is locked, restarting, or out of reach."""


class TooSlowError(StoreUnavailableError):
    """A question took the database longer than it may."""


class UserError(IndexerError):
    """The user's to fix; the message is a sentence that names the remedy."""


class SettingsError(UserError):
    """A setting is missing or invalid."""


class DeploymentError(UserError):
    """The deployment file is missing, ambiguous or invalid."""


class WrongChainError(UserError):
    """The chain at the RPC address is not the one of the deployment file or of the index."""


class ReorgTooDeepError(UserError):
    """The chain was replaced below a block that it had called final."""


class HistoryPrunedError(UserError):
    """No source keeps the old blocks that the index needs."""


class LockedError(UserError):
    """Another process writes to this index; `holder` says which and since when, "" where that cannot be told."""

    def __init__(self, message: str, holder: str = "") -> None:
        super().__init__(message)
        self.holder = holder


class StoreError(UserError):
    """The index is missing, empty, of another version, or of another deployment."""


class ReadOnlyError(UserError):
    """The database may be read, but not written."""


class UnknownBlockError(UserError):
    """A question names a block that the index does not hold."""


class EmptyIndexError(UnknownBlockError):
    """The index holds no block yet."""


class ReplacedBlockError(UnknownBlockError):
    """A question names a block that a reorg took away; `replacement` is the hash that its number has now, if any."""

    def __init__(self, number: int, replacement: str | None) -> None:
        instead = f"it is {replacement} now" if replacement else "nothing stands at its number now"
        super().__init__(f"Block {number} with this hash was replaced by a reorg, {instead}: ask for what is there.")
        self.number = number
        self.replacement = replacement


class QuestionError(UserError):
    """A question's argument is malformed or ambiguous."""
