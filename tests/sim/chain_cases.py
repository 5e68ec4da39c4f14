"""Cases of a chain that changes: reorgs, heads that go down or are replaced, restarts, and nodes that disagree."""

from functools import partial

from indexer.notices import ProviderChanged
from tests.indexer.world import anvil
from tests.sim import log_faults as log
from tests.sim.case import Case
from tests.sim.chains import CHAIN_SEED, TIMESTAMP, BusyWorld, busy_chain
from tests.sim.lab import Outcome, Verdict
from tests.sim.node_faults import At, Either
from tests.sim.proxy import proxied

DEEPEST = 64
"""anvil calls final what is so many blocks below the head."""


# --- reorgs


def replace(lab, depth):
    """Replace the chain's last blocks: by empty ones at once, or by a rollback and other blocks."""
    if lab.rng.random() < 0.5:
        lab.world.reorg(depth)
    else:
        lab.world.rpc.call("anvil_rollback", [depth])
        lab.world.grow(depth, 2, lab.rng.random())


def chosen(lab, depth):
    return depth or lab.rng.randrange(1, DEEPEST + 1)


def while_following(depth, lab):
    with lab.following() as running:
        running.arrive(lab.world.hash_at())
        for _ in range(2):
            replace(lab, chosen(lab, depth))
            lab.world.grow(2, 4, lab.rng.random())
            running.arrive(lab.world.hash_at())
    lab.remember()
    return lab.judge(running.error)


def while_stopped(depth, lab):
    for _ in range(2):
        error = lab.run()
        if error is not None:
            break
        replace(lab, chosen(lab, depth))
    lab.world.grow(1, 4, lab.rng.random())
    error = error or lab.run()
    lab.remember()
    return lab.judge(error)


def in_backfill(depth, lab):
    happens = At(lab.rng.randrange(6, 30), lambda: replace(lab, chosen(lab, depth)))
    lab.proxy.inject(happens)
    error = lab.run(max_range_blocks=5)
    lab.remember()
    if happens.left > 0:
        return Verdict(Outcome.WRONG, "the backfill ended before the reorg")
    return lab.judge(error)


def same_height(lab):
    with lab.following() as running:
        for _ in range(3):
            running.arrive(lab.world.hash_at())
            height = lab.world.head()
            replace(lab, 1)
            assert lab.world.head() == height
        running.arrive(lab.world.hash_at())
    lab.remember()
    return lab.judge(running.error)


def too_deep(lab):
    error = lab.run()
    before = lab.remember()
    lab.world.reorg(DEEPEST + 6)
    return lab.judge(error or lab.run(), before)


def shrinking(lab):
    """The rows stay while the head is lower, and follow when the chain has gone another way."""
    error = lab.run()
    before = lab.remember()
    lab.world.rpc.call("anvil_rollback", [5])
    verdict = lab.judge(error or lab.run(), before)
    if verdict.outcome is not Outcome.EXACT:
        return verdict
    if not lab.result.held:
        return Verdict(Outcome.WRONG, "it does not say that it holds")
    lab.world.grow(lab.rng.randrange(1, 9), 4, lab.rng.random())
    error = lab.run()
    lab.remember()
    return lab.judge(error)


# --- development chains that are started again


def restarted(growth, lab):
    """Genesis and deployment are equal to the last bit, what follows is not; the proxy now leads to the new chain."""
    error = lab.run()
    before = lab.remember()
    with busy_chain(lab.size.own_blocks + growth, 2, "another life") as other:
        assert other.document() == lab.world.document()
        lab.proxy.target = other.url
        if error is None:
            error = lab.run()
        after = lab.remember(other)
        return lab.judge(error, before, after)


def restarted_elsewhere(growth, arguments, interval, lab):
    """Same chain id and addresses, but genesis or deployment have other hashes."""
    error = lab.run()
    before = lab.remember()
    with anvil(*arguments) as url:
        other = BusyWorld(url)
        other.rpc.call("anvil_setBlockTimestampInterval", [interval])
        other.deploy()
        other.mine(max(1, lab.size.own_blocks + growth))
        same = [entry["address"] for _, entry in other.names.values()]
        assert same == [entry["address"] for _, entry in lab.world.names.values()]
        lab.proxy.target = url
        error = error or lab.run()
        other.rpc.close()
    return lab.judge(error, before)


def restarted_empty(lab):
    """The new chain has no contracts yet."""
    error = lab.run()
    before = lab.remember()
    with anvil("--timestamp", TIMESTAMP) as url:
        lab.proxy.target = url
        error = error or lab.run()
    return lab.judge(error, before)


# --- several nodes


def disagreeing(lab):
    """Two nodes on different forks behind one address, each request to one of them; then one of them goes."""
    error = None
    with busy_chain(lab.size.own_blocks, lab.size.own_events, CHAIN_SEED) as other:
        assert other.hash_at() == lab.world.hash_at()
        other.grow(4, 4, "here")
        lab.world.grow(3, 4, "there")
        among = [lab.remember(other), lab.remember()]
        lab.proxy.inject(Either(lab.world.url, other.url))
        enough = lab.proxy.requests + 120
        with lab.following(max_range_blocks=7) as running:
            running.until(lambda: lab.proxy.requests >= enough)
        error = running.error
        wrong = lab.written_wrong(among)
        if wrong:
            return Verdict(Outcome.WRONG, wrong)
    lab.proxy.inject()
    lab.world.grow(3, 4, "on")
    error = error or lab.run()
    lab.remember()
    return lab.judge(error)


def liar_among(make, lab):
    """Two providers in the settings, the first of which lies, and is set aside with its name."""
    verdict = first_among(make, lab)
    named = [notice for notice in lab.notices if isinstance(notice, ProviderChanged) and notice.set_aside]
    if verdict.outcome is Outcome.EXACT and not named:
        return Verdict(Outcome.WRONG, "rows exact, but nobody was set aside")
    return verdict


def first_among(make, lab):
    """Two providers in the settings, the first of which is of no use."""
    with proxied(lab.world.url, lab.seed) as liar:
        liar.inject(make(lab))
        error = lab.follow_to_head(rpc_url=f"{liar.url},{lab.world.url}", max_range_blocks=20)
        if error is None and liar.requests == 0:
            return Verdict(Outcome.WRONG, "the first provider was never asked")
    return lab.judge(error)


def dead_among(lab):
    """Two providers in the settings, the first of which does not answer."""
    return lab.judge(lab.follow_to_head(rpc_url=f"http://127.0.0.1:9,{lab.world.url}"))


def wrong_chain_among(lab):
    """Two providers in the settings, the first of which is of another chain."""
    with anvil("--chain-id", "5") as url:
        return lab.judge(lab.follow_to_head(rpc_url=f"{url},{lab.world.url}"))


_DEPTHS = {1: "depth 1", DEEPEST: "depth 64", None: "depth 1 to 64"}


def _reorgs():
    for how, play in (("following", while_following), ("stopped", while_stopped), ("in backfill", in_backfill)):
        for depth, words in _DEPTHS.items():
            yield Case(f"reorg while {how}, {words}", "chain", partial(play, depth), own_chain=True, long=depth == 1)


def _own(name, play, expects=Outcome.EXACT, **more):
    return Case(name, "chain", play, expects, own_chain=True, **more)


_RESTARTS = [
    _own("restarted dev chain, all equal up to the deployment, higher head", partial(restarted, 9)),
    _own("restarted dev chain, all equal up to the deployment, lower head", partial(restarted, -9)),
    *(
        _own(f"restarted dev chain, other {what}, {head} head", partial(restarted_elsewhere, growth, arguments, 2),
             Outcome.STOPPED)
        for what, arguments in (("genesis", ()), ("deployment blocks", ("--timestamp", TIMESTAMP)))
        for head, growth in (("higher", 50), ("lower", -1000))
    ),
    _own("restarted dev chain, nothing deployed", restarted_empty, Outcome.STOPPED),
]  # fmt: skip

_PROVIDERS = [
    _own("two nodes behind one address that disagree", disagreeing),
    Case("several providers, the first answers [] for logs", "providers", partial(liar_among, lambda _: log.Empty())),
    Case("several providers, the first cuts answers", "providers", partial(liar_among, lambda _: log.Cut(10))),
    Case("several providers, the first leaves a log out", "providers",
         partial(liar_among, lambda _: log.OneLeftOut(False)), in_bloom=Outcome.WRONG),
    Case("several providers, the first is of a fork", "providers", partial(first_among, lambda _: log.OtherFork())),
    Case("several providers, the first is dead", "providers", dead_among),
    Case("several providers, the first is of another chain", "providers", wrong_chain_among),
]  # fmt: skip

CASES = [
    *_reorgs(),
    _own("head replaced at the same height", same_height),
    _own("head shrinking", shrinking),
    _own("reorg deeper than finality", too_deep, Outcome.STOPPED),
    *_RESTARTS,
    *_PROVIDERS,
]
