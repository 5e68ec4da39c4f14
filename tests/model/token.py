"""A token that is honest or hostile by its mode, and the two ways in which the contracts move it."""

from dataclasses import dataclass, field

from tests.model.core import Contract, Message, Reverted, require

PLAIN, REFUSING, SILENT, FEE, NO_RETURN, CALLING = range(6)


@dataclass
class Token(Contract):
    """Balances, a block list, authorisations, and gifts: what a contract holds that its books do not know of."""

    contracts: frozenset
    balances: dict = field(default_factory=dict)
    blocked: set = field(default_factory=set)
    used: set = field(default_factory=set)
    gifts: dict = field(default_factory=dict)
    mode: int = PLAIN
    hook: object = None
    answer: int = 0

    def balance(self, account):
        return self.balances.get(account, 0)

    def set_mode(self, _sender, mode, hook=None):
        self.mode, self.hook, self.answer = mode, hook, 0

    def set_blocked(self, _sender, account, blocked):
        (self.blocked.add if blocked else self.blocked.discard)(account)

    def mint(self, _sender, receiver, amount):
        self.balances[receiver] = self.balance(receiver) + amount
        self._give(receiver, amount)

    def push(self, sender, receiver, amount):
        """What a contract pays: its books forget the amount, whatever the token does."""
        require(self._move(sender, receiver, amount), "token: transfer refused")
        if self.mode == SILENT:
            self._give(sender, amount)
        else:
            self._give(receiver, amount - (self.mode == FEE))

    def pull(self, sender, receiver, amount):
        """What a contract takes: all of it or nothing."""
        if amount == 0:
            return
        held = self.balance(receiver)
        require(self._move(sender, receiver, amount), "token: transfer refused")
        require(self.balance(receiver) == held + amount, "token: wrong amount")

    def receive_with_authorization(self, client, receiver, authorization, nonce, signature):
        if self.mode == SILENT:
            return
        amount, valid_after, valid_before = authorization
        require(self.world.now > valid_after, "token: not yet valid")
        require(self.world.now < valid_before, "token: authorisation expired")
        require((client, nonce) not in self.used, "token: authorisation used")
        fields = (client, receiver, amount, valid_after, valid_before, nonce)
        message = Message("ReceiveWithAuthorization", self.address, fields)
        by_key = client in self.world.keys and signature.approves(client, message)
        require(by_key, "token: bad signature")
        self.used.add((client, nonce))
        self._move(client, receiver, amount)

    def _give(self, receiver, amount):
        if receiver in self.contracts:
            self.gifts[receiver] = self.gifts.get(receiver, 0) + amount

    def _move(self, sender, receiver, amount):
        if self.mode == REFUSING:
            return False
        if self.mode == SILENT:
            return True
        require(sender not in self.blocked and receiver not in self.blocked, "token: blocked")
        require(self.balance(sender) >= amount, "token: balance too small")
        self.balances[sender] = self.balance(sender) - amount
        self.balances[receiver] = self.balance(receiver) + amount
        if self.mode == FEE and amount > 0:
            self.balances[receiver] -= 1
        if self.mode == CALLING:
            self._call_back()
        return True

    def _call_back(self):
        """Enter a contract from inside a transfer, as the token itself."""
        contract, name, arguments = self.hook
        try:
            getattr(contract, name)(self.address, *arguments)
            self.answer = 2
        except Reverted:
            self.answer = 1
