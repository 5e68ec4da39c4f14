"""Signing with a local key, sending, and waiting with an end."""

from dataclasses import dataclass
from typing import Any, Final, cast

from eth_account.signers.local import LocalAccount
from hexbytes import HexBytes
from web3.exceptions import TimeExhausted
from web3.logs import DISCARD
from web3.types import TxParams, TxReceipt

from counterfoil.chain.connection import Chain, asking
from counterfoil.chain.contracts import Write, address
from counterfoil.chain.errors import ChainError, NoAnswerError, RevertedError, UnconfirmedError

_POLL_SECONDS: Final = 0.05
MAX_FEE: Final = 10**13
"""Most wei that is ever paid for a unit of gas: an RPC must not be able to name any price."""


@dataclass(frozen=True, slots=True)
class Mined:
    """A transaction in a block; hashes are 0x and lower-case digits."""

    transaction: str
    block: int
    block_hash: str
    gas_used: int
    receipt: TxReceipt


class Sender:
    """Sends one account's writes, one after the other; `seconds` bounds the wait for each."""

    def __init__(self, chain: Chain, account: LocalAccount, *, seconds: float = 60) -> None:
        self.chain = chain
        self.account = account
        self.address = str(account.address).lower()
        self._seconds = seconds

    def send(self, write: Write) -> Mined:
        """Send and wait until mined. Raises RevertedError with the reason, and UnconfirmedError."""
        transaction = self._prepare(write)
        signed = self.account.sign_transaction(cast(Any, transaction))
        # The hash is our own, not the RPC's word: where its answer is lost we still know what to look for.
        sent = HexBytes(signed.hash)
        try:
            with asking(write.what):
                self.chain.web3.eth.send_raw_transaction(signed.raw_transaction)
            receipt = self._wait(write, sent)
        except NoAnswerError as error:
            raise UnconfirmedError("0x" + sent.hex(), "may have been sent, and the RPC stopped answering") from error
        with asking(write.what):
            if receipt["status"] != 1:
                self._explain(write, transaction, receipt)
            return Mined(
                transaction="0x" + sent.hex(),
                block=int(receipt["blockNumber"]),
                block_hash="0x" + bytes(receipt["blockHash"]).hex(),
                gas_used=int(receipt["gasUsed"]),
                receipt=receipt,
            )

    def _prepare(self, write: Write) -> TxParams:
        eth = self.chain.web3.eth
        sender = self.account.address
        with asking(write.what):
            gas = estimate(write, sender)
            base_fee = int(eth.get_block("latest").get("baseFeePerGas", 0))
            tip = int(eth.max_priority_fee)
            if 2 * base_fee + tip > MAX_FEE:
                raise ChainError(
                    f"The RPC asks {2 * base_fee + tip} wei for a unit of gas, more than {MAX_FEE}: "
                    "check it, or use another with --rpc."
                )
            prepared: TxParams = write.function.build_transaction(
                {
                    "from": sender,
                    "chainId": self.chain.chain_id,
                    "nonce": eth.get_transaction_count(sender, "pending"),
                    # State may move before the transaction is mined: a quarter more than the estimate.
                    "gas": gas + gas // 4,
                    "maxFeePerGas": 2 * base_fee + tip,
                    "maxPriorityFeePerGas": tip,
                }
            )
        return prepared

    def _wait(self, write: Write, sent: HexBytes) -> TxReceipt:
        with asking(write.what):
            try:
                return self.chain.web3.eth.wait_for_transaction_receipt(sent, self._seconds, _POLL_SECONDS)
            except TimeExhausted as error:
                why = f"was sent and is not mined after {self._seconds:g} s"
                raise UnconfirmedError("0x" + sent.hex(), why) from error

    def _explain(self, write: Write, transaction: TxParams, receipt: TxReceipt) -> None:
        # Running it again on the block that refused it gives the reason.
        again: TxParams = {"from": transaction["from"], "to": transaction["to"], "data": transaction["data"]}
        self.chain.web3.eth.call(again, receipt["blockNumber"])
        raise RevertedError(write.what, "it failed when it was mined, and would pass now")


def estimate(write: Write, sender: str) -> int:
    """The gas that a write of `sender` would take now. It runs the call: a refusal costs nothing.

    Raises RevertedError with the contract's reason.
    """
    with asking(write.what):
        # In the pending block, because a snapshot of the latest one is in the past only there.
        return int(write.function.estimate_gas({"from": address(sender)}, "pending"))


def events(write: Write, mined: Mined, name: str) -> list[dict[str, Any]]:
    """The arguments of every event `name` that the written contract logged in a transaction."""
    contract_event = write.function.w3.eth.contract(
        address=write.function.address, abi=write.function.contract_abi
    ).events[name]
    found = contract_event().process_receipt(mined.receipt, errors=DISCARD)
    return [dict(entry["args"]) for entry in found if entry["address"] == write.function.address]
