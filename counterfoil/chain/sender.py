"""Signing with a local key, sending, and waiting with an end."""

from dataclasses import dataclass
from typing import Any, Final, cast

from eth_account.signers.local import LocalAccount
from hexbytes import HexBytes
from web3 import Web3
from web3.contract import Contract
from web3.exceptions import TimeExhausted, TransactionNotFound
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


@dataclass(frozen=True, slots=True)
class Signed:
    """A transaction as it will be sent: who keeps it can send it again after a kill, and never sends two."""

    what: str
    account: str
    nonce: int
    transaction: str
    raw: bytes


class Sender:
    """Sends one account's writes, one after the other; `seconds` bounds the wait for each."""

    def __init__(self, chain: Chain, account: LocalAccount, *, seconds: float = 60) -> None:
        self.chain = chain
        self.account = account
        self.address = str(account.address).lower()
        self._seconds = seconds

    def send(self, write: Write) -> Mined:
        """Send and wait until mined. Raises RevertedError with the reason, and UnconfirmedError."""
        return self.submit(self.sign(write))

    def sign(self, write: Write) -> Signed:
        """Prepare and sign, and send nothing. Raises RevertedError where the contract would refuse it."""
        transaction = self._prepare(write)
        signed = self.account.sign_transaction(cast(Any, transaction))
        raw = bytes(signed.raw_transaction)
        transaction_hash = "0x" + bytes(signed.hash).hex()
        return Signed(write.what, self.account.address, int(transaction["nonce"]), transaction_hash, raw)

    def submit(self, signed: Signed) -> Mined:
        """Send what was signed, as often as need be, and wait until mined. Raises what `send` raises."""
        try:
            self._broadcast(signed)
            receipt = self._wait(signed)
        except NoAnswerError as error:
            raise UnconfirmedError(signed.transaction, "may have been sent, and the RPC stopped answering") from error
        with asking(signed.what):
            if receipt["status"] != 1:
                self._explain(signed, receipt)
            return Mined(
                transaction=signed.transaction,
                block=int(receipt["blockNumber"]),
                block_hash="0x" + bytes(receipt["blockHash"]).hex(),
                gas_used=int(receipt["gasUsed"]),
                receipt=receipt,
            )

    def can_pay(self, gas: int) -> bool:
        """Whether the account holds what so much gas may cost now."""
        with asking("The balance"):
            return int(self.chain.web3.eth.get_balance(self.account.address)) >= gas * self._fees()[0]

    def is_lost(self, signed: Signed) -> bool:
        """Whether a signed transaction can never be mined: another one with its nonce was."""
        with asking(signed.what):
            used = self.chain.web3.eth.get_transaction_count(Web3.to_checksum_address(signed.account), "latest")
        return used > signed.nonce and not self._is_known(signed)

    def is_early(self, signed: Signed) -> bool:
        """Whether a signed transaction cannot be mined yet: the chain has none of the nonce before it."""
        with asking(signed.what):
            used = self.chain.web3.eth.get_transaction_count(Web3.to_checksum_address(signed.account), "pending")
        return used < signed.nonce

    def _broadcast(self, signed: Signed) -> None:
        try:
            with asking(signed.what):
                self.chain.web3.eth.send_raw_transaction(HexBytes(signed.raw))
        except NoAnswerError:
            raise
        except ChainError:
            # Sent before, it is refused as known or as too late: whether it is there decides, not the RPC's words.
            if not self._is_known(signed):
                raise

    def _is_known(self, signed: Signed) -> bool:
        with asking(signed.what):
            try:
                self.chain.web3.eth.get_transaction(HexBytes(signed.transaction))
            except TransactionNotFound:
                return False
            return True

    def _prepare(self, write: Write) -> TxParams:
        eth = self.chain.web3.eth
        sender = self.account.address
        with asking(write.what):
            gas = estimate(write, sender)
            fee, tip = self._fees()
            prepared: TxParams = write.function.build_transaction(
                {
                    "from": sender,
                    "chainId": self.chain.chain_id,
                    "nonce": eth.get_transaction_count(sender, "pending"),
                    # State may move before the transaction is mined: a quarter more than the estimate.
                    "gas": gas + gas // 4,
                    "maxFeePerGas": fee,
                    "maxPriorityFeePerGas": tip,
                }
            )
        return prepared

    def _fees(self) -> tuple[int, int]:
        """The most that is paid for a unit of gas, and the tip in it, in wei. Raises ChainError above MAX_FEE."""
        base_fee = int(self.chain.web3.eth.get_block("latest").get("baseFeePerGas", 0))
        tip = int(self.chain.web3.eth.max_priority_fee)
        fee = 2 * base_fee + tip
        if fee > MAX_FEE:
            raise ChainError(
                f"The RPC asks {fee} wei for a unit of gas, more than {MAX_FEE}: check it, or use another with --rpc."
            )
        return fee, tip

    def _wait(self, signed: Signed) -> TxReceipt:
        sent = HexBytes(signed.transaction)
        with asking(signed.what):
            try:
                return self.chain.web3.eth.wait_for_transaction_receipt(sent, self._seconds, _POLL_SECONDS)
            except TimeExhausted as error:
                why = f"was sent and is not mined after {self._seconds:g} s"
                raise UnconfirmedError(signed.transaction, why) from error

    def _explain(self, signed: Signed, receipt: TxReceipt) -> None:
        # Running it again on the block that refused it gives the reason.
        eth = self.chain.web3.eth
        sent = eth.get_transaction(HexBytes(signed.transaction))
        eth.call({"from": sent["from"], "to": sent["to"], "data": sent["input"]}, receipt["blockNumber"])
        raise RevertedError(signed.what, "it failed when it was mined, and would pass now")


def estimate(write: Write, sender: str) -> int:
    """The gas that a write of `sender` would take now. It runs the call: a refusal costs nothing.

    Raises RevertedError with the contract's reason.
    """
    with asking(write.what):
        # In the pending block, because a snapshot of the latest one is in the past only there.
        return int(write.function.estimate_gas({"from": address(sender)}, "pending"))


def events(write: Write, mined: Mined, name: str) -> list[dict[str, Any]]:
    """The arguments of every event `name` that the written contract logged in a transaction."""
    contract = write.function.w3.eth.contract(address=write.function.address, abi=write.function.contract_abi)
    return events_of(contract, mined, name)


def events_of(contract: Contract, mined: Mined, name: str) -> list[dict[str, Any]]:
    """The arguments of every event `name` that a contract logged in a transaction."""
    found = contract.events[name]().process_receipt(mined.receipt, errors=DISCARD)
    return [dict(entry["args"]) for entry in found if entry["address"] == contract.address]
