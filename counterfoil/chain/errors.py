"""What can go wrong at the chain's edge; each message is a sentence that names the remedy."""

from indexer.errors import UserError


class ChainError(UserError):
    """The RPC gave no usable answer."""


class NoAnswerError(ChainError):
    """Nothing, or nothing whole, came back in time: whether the RPC acted is not known."""


class PrunedError(ChainError):
    """The RPC no longer holds the state of a block."""


class RevertedError(ChainError):
    """A contract refused a call; `reason` is its revert reason, empty where it gave none."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} was refused: {reason or 'the contract gave no reason'}.")
        self.reason = reason


class UnconfirmedError(ChainError):
    """A transaction may have been sent and may still be mined; `transaction` is its hash."""

    def __init__(self, transaction: str, why: str) -> None:
        super().__init__(f"Transaction {transaction} {why}: look for it before sending another, it may still be mined.")
        self.transaction = transaction
