"""Faults of eth_getLogs: answers that are short, long, out of order, of another contract, or of another chain."""

from tests.sim.proxy import Fault

FOREIGN = "0x" + "fe" * 20
OTHER_FORK = "0x" + "fd" * 32


class LogFault(Fault):
    """Changes answers of eth_getLogs for a range of blocks, each with probability `share`."""

    def __init__(self, share=1.0):
        self.share = share
        self.hits = 0

    def answer(self, call, answer):
        asked = call.method == "eth_getLogs" and "fromBlock" in call.params[0]
        if not asked or "result" not in answer or self.rng.random() >= self.share:
            return answer
        spoiled = self.logs(call.params[0], answer["result"])
        self.hits += spoiled != answer["result"]
        return {**answer, "result": spoiled}

    def logs(self, wanted, logs):
        raise NotImplementedError


class Unseen(LogFault):
    """The log index is behind the headers: [] for what it has not seen, `step` blocks less with each request."""

    name = "empty for blocks that the node has not seen"

    def __init__(self, first, step):
        super().__init__()
        self.seen, self.step = first, step

    def answer(self, call, answer):
        if call.method == "eth_getBlockReceipts" and int(call.params[0], 16) > self.seen:
            return {**answer, "result": None}
        return super().answer(call, answer)

    def logs(self, wanted, logs):
        kept = [log for log in logs if int(log["blockNumber"], 16) <= self.seen]
        self.seen += self.step
        return kept


class EveryNthEmpty(LogFault):
    """Every n-th answer is []."""

    name = "every n-th answer empty"

    def __init__(self, n=3):
        super().__init__()
        self.n, self.count = n, 0

    def logs(self, wanted, logs):
        self.count += 1
        return [] if self.count % self.n == 0 else logs


class Empty(LogFault):
    """A share of the answers is []."""

    name = "30% of the answers empty"

    def logs(self, wanted, logs):
        return []


class Cut(LogFault):
    """The answer ends after so many logs, without an error."""

    name = "cut off without an error"

    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def logs(self, wanted, logs):
        return logs[: self.limit]


class Twice(LogFault):
    """Every log comes twice."""

    name = "every log twice"

    def logs(self, wanted, logs):
        return [log for log in logs for _ in range(2)]


class Shuffled(LogFault):
    """The logs come in any order."""

    name = "out of order"

    def logs(self, wanted, logs):
        return self.rng.sample(logs, len(logs))


class Foreign(LogFault):
    """Logs of another contract, with our topics, stand between ours."""

    name = "logs of another contract mixed in"

    def logs(self, wanted, logs):
        strange = [{**log, "address": FOREIGN, "logIndex": hex(10_000 + at)} for at, log in enumerate(logs)]
        return self.rng.sample([*logs, *strange], 2 * len(logs))


class Removed(LogFault):
    """Logs that a reorg removed stand before the ones that count."""

    name = "removed: true entries"

    def logs(self, wanted, logs):
        gone = [{**log, "removed": True, "blockHash": OTHER_FORK, "data": "0x" + "00" * 64} for log in logs]
        return [*gone, *logs]


class OtherFork(LogFault):
    """Right block numbers, but the hashes of a fork that the headers do not know."""

    name = "logs of a fork that the headers do not know"

    def logs(self, wanted, logs):
        return [{**log, "blockHash": OTHER_FORK} for log in logs]


class OneLeftOut(LogFault):
    """One log is missing in the middle: one of several of its kind in a block, or the only one."""

    name = "one log left out"

    def __init__(self, alone):
        super().__init__()
        self.alone = alone

    def logs(self, wanted, logs):
        kinds = [(log["blockNumber"], log["address"], log["topics"][0]) for log in logs]
        inside = range(len(logs) // 4, 3 * len(logs) // 4)
        found = [at for at in inside if (kinds.count(kinds[at]) == 1) is self.alone]
        if not found:
            return logs
        at = self.rng.choice(found)
        return logs[:at] + logs[at + 1 :]


class Altered(LogFault):
    """One log in the middle says something else: a digit of its data is another one."""

    name = "one log's data altered"

    def logs(self, wanted, logs):
        found = [at for at in range(len(logs) // 4, 3 * len(logs) // 4) if len(logs[at]["data"]) == 66]
        if not found:
            return logs
        at = self.rng.choice(found)
        data = logs[at]["data"]
        changed = {**logs[at], "data": data[:-1] + ("1" if data[-1] == "0" else "0")}
        return [*logs[:at], changed, *logs[at + 1 :]]


class Refused(Fault):
    """A provider that refuses more than so many blocks, or more than so many results, in its own words."""

    def __init__(self, wording, *, blocks=None, results=None):
        self.name = f"{'range' if blocks else 'result'} limit, words of {wording.who}"
        self.wording, self.blocks, self.results = wording, blocks, results
        self.hits = 0
        self.refusing = False

    def answer(self, call, answer):
        if call.method != "eth_getLogs" or "fromBlock" not in call.params[0] or not self._too_much(call, answer):
            return answer
        self.hits += 1
        self.refusing = True
        return {"jsonrpc": "2.0", "id": call.id, "error": self.wording.error()}

    def _too_much(self, call, answer):
        wanted = call.params[0]
        if self.blocks:
            return int(wanted["toBlock"], 16) - int(wanted["fromBlock"], 16) >= self.blocks
        return len(answer["result"]) > self.results

    def reply(self, calls, reply):
        if self.refusing:
            reply.status = self.wording.status
        self.refusing = False
        return reply
