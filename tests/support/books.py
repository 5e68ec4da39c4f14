"""The books of a market: what its chain, its nodes and an agent say of every unit of money, and whether they agree."""

import sqlite3
from contextlib import closing

from counterfoil.agent.journal import Journal, Outcome, SessionState
from counterfoil.agent.record import record_of
from counterfoil.agent.spending import SpendBook
from counterfoil.chain.contracts import ExperienceLedger
from counterfoil.node.node import book_path
from counterfoil.receipts import digest

SETTLED = 3


class Books:
    """What one client of a world spent since this was made; `operators` are all whom it may pay, by name."""

    def __init__(self, world, home, client, operators):
        self.world, self.home = world, home
        self.address = world.by(client).address
        self.operators = [world.by(name).address for name in operators]
        self.journal = Journal(home / "agent" / "journal.sqlite")
        self._judged = set()
        self._held = self.held()

    # --- what there is

    def left(self):
        """What the agent is not done with."""
        states = {SessionState.VOID, SessionState.DONE}
        runs = [run.run_id for run in self.journal.unfinished(self.address)]
        return runs + [row.session_id for row in self.rows() if row.state not in states]

    def runs(self):
        return [run for run in self.journal.runs(10**6) if run.client == self.address]

    def rows(self):
        """Every session of the journal."""
        return [row for run in self.runs() for row in self.journal.sessions(run.run_id)]

    def held(self):
        """What client and operators hold, in token and credit together."""
        people = (self.address, *self.operators)
        return {one: self.world.token.balance_of(one) + self.world.manager.credit_of(one) for one in people}

    def openings(self):
        """The sessions that the chain opened for the client: ids and events."""
        found = [one["args"] for one in self.world.manager.contract.events["SessionOpened"]().get_logs(from_block=0)]
        ours = [event for event in found if event["client"].lower() == self.address]
        return [("0x" + bytes(event["session_id"]).hex(), event) for event in ours]

    def lost(self):
        """Base units that the client spent and that no operator got, or the other way round: 0 on a whole market."""
        return abs(sum(self.held().values()) - sum(self._held.values())) + abs(self._client_paid() - self._recorded())

    def _client_paid(self):
        return self._held[self.address] - self.held()[self.address]

    def _recorded(self):
        return sum(int(record_of(self.journal, run)["paid"]) for run in self.runs())

    # --- what has to be

    def wrong(self):
        """Everything that is not as it has to be, in sentences; nothing where the books agree on every unit.

        A session is settled for good, so each is looked at once.
        """
        rows = [row for row in self.rows() if row.state is not SessionState.VOID]
        said = [*self._wrong_sessions(rows), *self._wrong_sums()]
        for row in rows:
            if row.session_id not in self._judged:
                said += self._wrong_session(row)
        self._judged |= {row.session_id for row in rows}
        return said

    def _wrong_sessions(self, rows):
        opened = sorted((session_id, event["deposit"]) for session_id, event in self.openings())
        known = sorted((row.session_id, row.deposit) for row in rows)
        if opened != known:
            yield f"only the chain knows {set(opened) - set(known)}, only the journal {set(known) - set(opened)}"
        if len({session_id for session_id, _ in opened}) != len(opened):
            yield "a session was opened twice"

    def _wrong_session(self, row):
        """What is wrong with one session, by the chain, its node's book and the journal."""
        session = self.world.manager.session(row.session_id)
        calls = self.journal.calls(row.reservation_id)
        booked = vouchers(self.home, session.node_id)
        if session.status != SETTLED:
            yield f"{row.session_id} has status {session.status}"
        if (session.operator, session.paid, session.price) != (row.operator, row.paid, row.price):
            yield f"{row.session_id}: {session.paid} paid on chain, {row.paid} by the journal"
        if session.paid != session.price * session.calls or session.calls > len(calls):
            yield f"{row.session_id}: {session.paid} paid for {session.calls} calls of {len(calls)} that were begun"
        if booked is not None and booked.get(row.session_id, (0, 0)) != (session.paid, session.calls):
            yield f"{row.session_id}: {session.paid} on chain, in the node's book {booked.get(row.session_id)}"
        if booked is not None and sum(call.outcome is Outcome.WORKED for call in calls) > session.calls:
            yield f"{row.session_id}: more calls worked than were charged"
        if digest(self.world.receipts.load(row.decision)) != row.decision:
            yield f"{row.session_id}: its receipt is another"
        yield from self._wrong_words(row, calls)

    def _wrong_words(self, row, calls):
        """A session with calls of which somebody is to be told is rated once and attested once, and another never."""
        due = int(any(call.outcome in {Outcome.WORKED, Outcome.FAILED} for call in calls))
        for ledger in (self.world.reputation, ExperienceLedger(self.world.chain)):
            query = {"address": ledger.contract.address, "fromBlock": 0, "topics": [None, row.session_id]}
            found = len(self.world.chain.web3.eth.get_logs(query))
            if found != due:
                yield f"{row.session_id}: {ledger.NAME} was told {found} times, not {due} times"

    def _wrong_sums(self):
        held, book = self.held(), SpendBook(self.home / "agent" / "spending.sqlite")
        got = sum(held[one] - self._held[one] for one in held if one != self.address)
        if not self._client_paid() == got == self._recorded():
            yield f"the client paid {self._client_paid()}, operators got {got}, the records say {self._recorded()}"
        for run in self.runs():
            spent, paid = book.spent(run_id=run.run_id), int(record_of(self.journal, run)["paid"])
            if (spent.paid, spent.reserved) != (paid, 0):
                yield f"run {run.run_id}: the spend book says {spent}, the record {paid}"


def vouchers(home, node_id):
    """Amount and calls of the last voucher of every session in a node's book, None where it has none."""
    path = book_path(home, node_id)
    if not path.exists():
        return None
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as book:
        found = book.execute("select session_id, amount, calls from sessions").fetchall()
    return {session_id: (int(amount), calls) for session_id, amount, calls in found}
