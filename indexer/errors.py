"""The two trees of errors (design section 4).

IndexerError
├── RetryableError            the source may recover; the loop backs off and asks again
│   ├── UnavailableError      no answer, or an HTTP status that is not a success
│   ├── RateLimitedError      the source asks for fewer requests
│   ├── RangeTooLargeError    the source asks for a smaller block range
│   ├── BadAnswerError        an answer that is malformed or contradicts itself
│   ├── BehindError           the source has not seen a block yet, or its head went down
│   └── ForkError             answers of one round belong to different forks
└── UserError                 the user's to fix; the message names the remedy
    ├── SettingsError, DeploymentError, WrongChainError, ReorgTooDeepError
    ├── LockedError, StoreError
    └── UnknownBlockError, QuestionError
"""


class IndexerError(Exception):
    """Everything the indexer raises on purpose."""


class RetryableError(IndexerError):
    """The source may recover: back off, check the identity again, and retry."""


class UnavailableError(RetryableError):
    """The source gave no usable HTTP answer."""


class RateLimitedError(RetryableError):
    """The source asked for fewer requests."""


class RangeTooLargeError(RetryableError):
    """The source asked for a smaller block range."""


class BadAnswerError(RetryableError):
    """The source's answer is malformed or contradicts itself."""


class BehindError(RetryableError):
    """The source does not hold a block that it should hold; null means not yet."""


class ForkError(RetryableError):
    """Answers of one round belong to different forks: the chain moved in between."""


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


class LockedError(UserError):
    """Another process writes to this index."""


class StoreError(UserError):
    """The index is missing, empty, of another version, or of another deployment."""


class UnknownBlockError(UserError):
    """A question names a block that the index does not hold."""


class QuestionError(UserError):
    """A question's argument is malformed or ambiguous."""
