"""What to do about a refusal, by the contract's own reason. A test holds this table to the sources of the contracts."""

from typing import Final

FALLBACK: Final = (
    "Look at `counterfoil node status` of the node; if nothing there explains it, the chain moved meanwhile: try again."
)

REMEDIES: Final = {
    "registry: empty endpoint": "Name a URL where agents reach the node, such as https://node.example.",
    "registry: stake too large": "Stake less: all of a node's stake stays below 2^128 base units.",
    "registry: unknown node": "Name a node that there is: see `counterfoil nodes`.",
    "registry: unknown service": "Name a service that there is: see `counterfoil services`.",
    "registry: not the operator": "Sign with the key of the node's operator: `counterfoil node status` names it.",
    "registry: malformed capability": (
        "Use small letters, digits, dots and hyphens, at most 64 of them, the first one a letter or a digit: "
        "such as routing.v1."
    ),
    "registry: malformed category": (
        "Use small letters, digits, dots, colons and hyphens, at most 64 of them, the first one a letter or a digit: "
        "such as data:crypto-price."
    ),
    "registry: capability unchanged": "Nothing is left to do: it is so already.",
    "registry: too many capabilities": "Switch another capability off first: a node has at most 16.",
    "registry: nothing to stake": "Name an amount above 0.",
    "registry: nothing to unstake": "Name an amount above 0.",
    "registry: more than the stake": "Name at most the stake that `counterfoil node status` shows.",
    "registry: unbonding too large": "Withdraw what is released with `counterfoil node withdraw` first.",
    "registry: nothing unbonding": "Take stake out with `counterfoil node unstake` first, then wait for its release.",
    "registry: still unbonding": "Withdraw it when it is released: `counterfoil node status` says when.",
    "registry: held by a dispute": (
        "Wait for the dispute to be resolved, or, once its time is over, drop it at the court: anyone may then."
    ),
    "registry: category already listed": (
        "A node has one service in a category for ever: change it with `counterfoil node set-price`, or take it up "
        "again with `counterfoil node resume-service`."
    ),
    "registry: price too large": "Ask less: a price is below 2^96 base units.",
    "sessions: not the operator": "Sign with the key of the session's operator: `counterfoil session` names it.",
    "sessions: already settled": "Nothing is left to do: `counterfoil session` shows what was paid.",
    "sessions: voucher above deposit": (
        "The deposit on this chain is smaller than when the voucher was taken: wait until the chain holds it again, or "
        "settle at zero with --zero."
    ),
    "sessions: too many calls": "No client can sign so many calls: check the file of the node's vouchers.",
    "sessions: bad voucher": (
        "The voucher is not of the session's signer: check that the file of vouchers is of this chain, or settle at "
        "zero with --zero."
    ),
    "sessions: no credit": "There is nothing to withdraw yet: settle a session first.",
    "sessions: bad receiver": "Name another account with --to.",
    "token: transfer refused": "The token refuses the transfer: check with its issuer that it serves both accounts.",
    "token: wrong amount": "The token moved another amount than it was asked to: do not use it for this deployment.",
    "token: allowance too small": "The approval was used in between: run the command again, and it approves anew.",
    "token: balance too small": "Send the account more of the token, or name a smaller amount.",
    "token: blocked": "The token refuses this account: withdraw to another one, or ask the token's issuer.",
}


def remedy(reason: str) -> str:
    """The next step after a refusal, a sentence."""
    return REMEDIES.get(reason, FALLBACK)
