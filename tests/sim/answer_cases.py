"""Cases of a node that answers wrongly, refuses, or does not answer: the chain itself does not change."""

from functools import partial

from tests.sim import log_faults as log
from tests.sim import transport_faults as transport
from tests.sim.case import Case
from tests.sim.lab import Outcome, Verdict
from tests.sim.node_faults import Pruned, WrongChainId
from tests.sim.wordings import PRUNED, TOO_MANY_BLOCKS, TOO_MANY_RESULTS

RETRY_AFTER = 4
"""Seconds; no pause of the product's own has that length."""
SMALLEST_LIMIT = 2**16
"""Bytes, the least that the settings allow for an answer."""
OFTEN = 1.0


def through(make, lab, **settings):
    """Follow through a fault that leaves the node usable, up to the head."""
    fault = make(lab)
    lab.proxy.inject(fault)
    error = lab.follow_to_head(**settings)
    if error is None and getattr(fault, "hits", 1) == 0:
        return Verdict(Outcome.WRONG, "the fault never struck")
    return lab.judge(error)


def against(make, lab, **settings):
    """Run once against a fault that never ends."""
    lab.proxy.inject(make(lab))
    return lab.judge(lab.run(**settings))


def waits_as_told(lab):
    """A provider that says how long to wait is not asked before that."""
    verdict = through(lambda _: transport.TooManyRequests(RETRY_AFTER), lab)
    waited = any(pause is not None and RETRY_AFTER <= pause < RETRY_AFTER + 1 for pause in lab.stop.pauses)
    if verdict.outcome is Outcome.EXACT and not waited:
        return Verdict(Outcome.WRONG, f"rows exact, but it did not wait the {RETRY_AFTER} s that it was told")
    return verdict


def pruned_after_start(lab):
    """An index that is past the pruned blocks does not need them."""
    before = lab.world.head() - 20
    lab.proxy.inject(log.Unseen(before, 0))
    with lab.following(max_range_blocks=10) as running:
        running.arrive(lab.world.hash_at(before))
    if running.error is not None:
        return lab.judge(running.error)
    return through(lambda _: Pruned(before - 15, PRUNED[0]), lab)


def _case(name, group, play, make, expects=Outcome.EXACT, **settings):
    in_bloom = settings.pop("in_bloom", None)
    large = settings.pop("large", group == "logs")
    return Case(name, group, partial(play, make, **settings), expects, in_bloom, large=large)


def _left_out(name, alone, in_bloom):
    return _case(name, "logs", through, lambda _: log.OneLeftOut(alone), in_bloom=in_bloom)


_LOGS = [
    _case(log.Unseen.name, "logs", through, lambda lab: log.Unseen(lab.world.head() // 2, 3)),
    _case(log.EveryNthEmpty.name, "logs", through, lambda _: log.EveryNthEmpty(), max_range_blocks=10),
    _case(log.Empty.name, "logs", through, lambda _: log.Empty(0.3), max_range_blocks=10),
    _case(log.Cut.name, "logs", through, lambda lab: log.Cut(lab.size.cut), max_range_blocks=100),
    _case(log.Twice.name, "logs", through, lambda _: log.Twice()),
    _case(log.Shuffled.name, "logs", through, lambda _: log.Shuffled()),
    _case(log.Foreign.name, "logs", through, lambda _: log.Foreign()),
    _case(log.Removed.name, "logs", through, lambda _: log.Removed()),
    _case(log.OtherFork.name + ", now and then", "logs", through, lambda _: log.OtherFork(0.4), max_range_blocks=10),
    _case(log.OtherFork.name + ", always", "logs", against, lambda _: log.OtherFork(), Outcome.STOPPED),
    _left_out("one log left out, the only one of its kind in the block", True, None),
    _left_out("one log left out, others of its kind in the block", False, Outcome.WRONG),
    _case(log.Altered.name, "logs", through, lambda _: log.Altered(), in_bloom=Outcome.WRONG),
]  # fmt: skip

_LIMITS = [
    *(
        _case(f"range limit, words of {words.who}", "limits", through,
              lambda lab, words=words: log.Refused(words, blocks=lab.size.range_limit))
        for words in TOO_MANY_BLOCKS
    ),
    *(
        _case(f"result limit, words of {words.who}", "limits", through,
              lambda lab, words=words: log.Refused(words, results=lab.size.result_limit))
        for words in TOO_MANY_RESULTS
    ),
]  # fmt: skip

_TRANSPORT = [
    Case("429 with Retry-After", "transport", waits_as_told),
    _case("429 without Retry-After", "transport", through, lambda _: transport.TooManyRequests()),
    _case(transport.BadGateway.name, "transport", through, lambda _: transport.BadGateway()),
    _case(transport.HtmlPage.name, "transport", through, lambda _: transport.HtmlPage()),
    _case(transport.CutInBody.name, "transport", through, lambda _: transport.CutInBody()),
    _case(transport.Hang.name, "transport", through, lambda _: transport.Hang(10), request_seconds=0.5),
    _case(transport.MalformedJson.name, "transport", through, lambda _: transport.MalformedJson()),
    _case(transport.ErrorUnder200.name, "transport", through, lambda _: transport.ErrorUnder200()),
    _case(transport.NullBlock.name, "transport", through, lambda _: transport.NullBlock(), large=True),
    _case(transport.WrongId.name, "transport", through, lambda _: transport.WrongId()),
    _case(transport.Oversized.name, "transport", through, lambda _: transport.Oversized(SMALLEST_LIMIT * 4),
          max_response_bytes=SMALLEST_LIMIT * 4),
    _case("every answer over the size limit", "transport", against,
          lambda _: transport.Oversized(SMALLEST_LIMIT, OFTEN), Outcome.STOPPED, max_response_bytes=SMALLEST_LIMIT),
    _case("429 always", "transport", against, lambda _: transport.TooManyRequests(share=OFTEN), Outcome.STOPPED),
    _case("502 always", "transport", against, lambda _: transport.BadGateway(OFTEN), Outcome.STOPPED),
    _case("malformed JSON always", "transport", against, lambda _: transport.MalformedJson(OFTEN), Outcome.STOPPED),
    _case("the wrong id always", "transport", against, lambda _: transport.WrongId(OFTEN), Outcome.STOPPED),
    _case("a hang always", "transport", against, lambda _: transport.Hang(10, OFTEN), Outcome.STOPPED,
          request_seconds=0.2),
]  # fmt: skip

_NODE = [
    _case(WrongChainId.name, "chain", against, lambda _: WrongChainId(), Outcome.STOPPED),
    *(
        _case(f"pruned history, words of {words.who}", "chain", against,
              lambda lab, words=words: Pruned(lab.world.head() - 20, words), Outcome.STOPPED)
        for words in PRUNED
    ),
    _case("pruned history, logs and receipts null", "chain", against, lambda lab: Pruned(lab.world.head() - 20),
          Outcome.STOPPED),
    _case("pruned history, blocks null", "chain", against,
          lambda lab: Pruned(lab.world.head() - 20, methods=("eth_getBlockByNumber",)), Outcome.STOPPED),
    Case("pruned history below what is indexed", "chain", pruned_after_start),
]  # fmt: skip

CASES = [*_LOGS, *_LIMITS, *_TRANSPORT, *_NODE]
