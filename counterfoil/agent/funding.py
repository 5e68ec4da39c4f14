"""What a deposit takes: credit first, then the token with its allowance; gas is the wallet's own or its relayer's."""

from typing import Final

from counterfoil.agent.desk import Desk
from counterfoil.chain.contracts import Authorization, Opening
from counterfoil.chain.errors import ChainError
from counterfoil.chain.sender import Signed
from counterfoil.chain.typed_data import authorization

VALID_SECONDS: Final = 3600


class UnfundedError(ChainError):
    """A wallet that cannot pay; the message says what is missing, how much, and where to send it."""


def sign_opening(desk: Desk, opening: Opening) -> Signed:
    """Sign the transaction that opens a session, after the token's allowance where that is too small.

    Without gas of its own the client signs an authorisation and its relayer the transaction. Call it in the wallet's
    turn. Raises UnfundedError and RevertedError.
    """
    lacking = shortage(desk, opening.deposit)
    if desk.wallet.pays():
        if lacking and desk.token.allowance(desk.address, desk.manager.address) < lacking:
            desk.wallet.send(desk.token.approve(desk.manager.address, lacking))
        return desk.wallet.sign(desk.manager.open(opening))
    return _relayed(desk, opening, lacking)


def shortage(desk: Desk, deposit: int) -> int:
    """What credit lacks for a deposit and the token will be asked for. Raises UnfundedError where it is not there."""
    lacking = max(0, deposit - desk.manager.credit_of(desk.address))
    held = desk.token.balance_of(desk.address)
    if held < lacking:
        raise UnfundedError(
            f"The wallet {desk.address} holds {held} of the payment token {desk.token.address} and needs {lacking} for "
            f"a deposit of {deposit}: send it {lacking - held} more."
        )
    return lacking


def _relayed(desk: Desk, opening: Opening, lacking: int) -> Signed:
    sender = desk.wallet.sender()
    taken = Authorization(lacking, 0, desk.chain.head().timestamp + VALID_SECONDS)
    data = authorization(
        desk.chain.chain_id,
        desk.manager.address,
        desk.token.address,
        desk.token.domain(),
        desk.address,
        opening,
        taken,
    )
    signature = data.sign(desk.wallet.account)
    return sender.sign(desk.manager.open_with_authorization(desk.address, opening, taken, signature))
