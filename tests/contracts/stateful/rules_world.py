"""Time, blocks, tokens, and accounts that have no right to anything."""

from hypothesis import strategies as st

from tests.contracts.stateful.choosing import mostly
from tests.contracts.stateful.machine_base import MachineBase, action
from tests.model.core import EMPTY
from tests.model.token import CALLING, FEE, NO_RETURN, REFUSING, SILENT

TOKENS = st.sampled_from(["payment", "stake"])
MODES = st.sampled_from([REFUSING, SILENT, FEE, NO_RETURN, CALLING, CALLING])
SECONDS = st.one_of(st.integers(1, 30), st.integers(31, 400))


class WorldRules(MachineBase):
    """What happens around the contracts."""

    @action(3)
    def wait(self, data):
        self.driver.wait(data.draw(SECONDS, label="seconds"))

    @action(6, when=lambda self: self.model.deadlines())
    def wait_for_a_deadline(self, data):
        """Go to a moment at which something changes, or to the second before or after it."""
        deadline = data.draw(st.sampled_from(self.model.deadlines()[:6]), label="deadline")
        offset = data.draw(st.integers(-1, 1), label="offset")
        self.driver.set_clock(now=max(self.model.world.now, deadline + offset))

    @action(2)
    def mine(self, data):
        """Blocks pass; seldom on another fork, where no hash of a block is what it was."""
        if data.draw(st.integers(0, 3), label="3 is another fork") == 3:
            self.driver.reorg()
        self.driver.mine(data.draw(st.sampled_from([1, 1, 4, 5, 6]), label="blocks"))

    @action(5)
    def make_token_hostile(self, data):
        """For the next few actions."""
        token, mode = data.draw(TOKENS, label="token"), data.draw(MODES, label="mode")
        hook = data.draw(st.sampled_from(self.hooks()), label="calls") if mode == CALLING else None
        self.driver.set_mode(token, mode, data.draw(st.integers(0, 2), label="lasting"), hook)

    def hooks(self):
        """What a token may call during a transfer, as itself.

        The model undoes whole actions only, so these are calls that check everything before they change anything.
        """
        ends = [("manager", name, (i,)) for i in self.model.manager.living() for name in ("finish_close", "expire")]
        drops = [("court", "drop", (i,)) for i in self.model.court.opened()]
        return [
            *ends,
            *drops,
            ("manager", "withdraw", (self.driver.wallet,)),
            ("registry", "register_node", ("http://t", 0)),
        ]

    @action(3)
    def meddle(self, data):
        """What others do to the contracts: block lists, gifts, and powers that they do not have."""
        data.draw(st.sampled_from([self.block, self.donate, self.usurp]), label="meddle")(data)

    def block(self, data):
        """Take somebody off the token's block list where one is on it; else put somebody on it, seldom a contract."""
        token = data.draw(TOKENS, label="token")
        listed = sorted(getattr(self.model, token).blocked)
        likely = st.sampled_from(listed or self.model.accounts)
        account = mostly(data, likely, st.sampled_from(self.contracts()), "account")
        self.driver.act(token, "set_blocked", EMPTY, account, account not in listed)

    def donate(self, data):
        """Tokens sent by mistake change no books."""
        to, amount = data.draw(st.sampled_from(self.contracts()), label="to"), data.draw(st.integers(1, 100))
        self.driver.act(data.draw(TOKENS, label="token"), "mint", EMPTY, to, amount)

    def usurp(self, data):
        """Nobody but the court has its powers, the arbiter included."""
        node_id = data.draw(st.integers(0, 4), label="node")
        calls = [("slash", node_id, 5), ("hold", node_id), ("release", node_id)]
        function, *arguments = data.draw(st.sampled_from(calls), label="call")
        self.driver.act("registry", function, self.anyone(data), *arguments)

    def contracts(self):
        return [self.model.manager.address, self.model.registry.address, self.model.court.address]
