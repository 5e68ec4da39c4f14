"""The whole suite as one model: the contracts that know each other, the lens over them, and what every view answers."""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from eth_utils import keccak

from counterfoil.routing.lottery import Candidate, rank
from tests.model.core import NO_CAP, World
from tests.model.court import Court
from tests.model.ledgers import Experience, Reputation
from tests.model.registry import Registry
from tests.model.sessions import Manager
from tests.model.token import Token

RULES = {"average": 1, "cap": 2}


class View(NamedTuple):
    """One question to a contract."""

    contract: str
    function: str
    arguments: tuple


@dataclass
class Suite:
    """One deployment; `payment` and `stake` may be one token."""

    world: World
    accounts: tuple[str, ...]
    stake: Token
    payment: Token
    registry: Registry
    manager: Manager
    reputation: Reputation
    experience: Experience
    court: Court

    def candidates(self, category):
        """The routable listings of a category as routing sees them, by ascending id."""
        return [self._candidate(i) for i in self.registry.listed(category) if self.registry.routable(i)]

    def ranking(self, category, seed, price_cap):
        """The draw that the lens must agree with, by the Python implementation."""
        return rank(self.candidates(category), seed, None if price_cap == NO_CAP else price_cap)

    def weights(self, category, price_cap):
        """What the lens answers: whether the guard was relaxed, and each candidate's rule and terms."""
        ranking = self.ranking(category, bytes(32), price_cap)
        return ranking.relaxed, [self._terms(ranking, candidate.service_id) for candidate in ranking.candidates]

    def deadlines(self):
        """Every moment at which something is allowed or forbidden from then on."""
        manager, court = self.manager, self.court
        ends = [session.expires_at + manager.challenge_period for session in manager.living().values()]
        ends += [session.closes_at for session in manager.living().values() if session.closes_at]
        ends += [session.settled_at + court.dispute_window for session in manager.sessions.values()]
        ends += [dispute.opened_at + court.resolve_window for dispute in court.opened().values()]
        ends += [node.release_at for node in self.registry.nodes.values()]
        return sorted({end for end in ends if end > self.world.now})

    def _candidate(self, service_id):
        service = self.registry.services[service_id]
        node_id = service.node_id
        rating_sum, rating_count, *_ = self.reputation.ratings(node_id)
        return Candidate(
            service_id=service_id,
            price=service.price,
            stake=self.registry.nodes[node_id].stake,
            rating_sum=rating_sum,
            rating_count=rating_count,
            active_sessions=self.manager.active(node_id),
            max_concurrent=self.registry.slots(node_id),
        )

    @staticmethod
    def _terms(ranking, service_id):
        if service_id in ranking.dropped:
            return (service_id, RULES[ranking.dropped[service_id].rule], 0, 0, 0, 0, 0, 0)
        terms = ranking.terms[service_id]
        return (service_id, 0, *(getattr(terms, field.name) for field in fields(terms)))


def frequent_views(suite):
    """What is compared after every step."""
    return {
        **_balances(suite),
        **_node_views(suite),
        **_account_views(suite),
        **{View("reputation", "ratings", (i,)): suite.reputation.ratings(i) for i in suite.registry.nodes},
        **_session_views(suite, suite.manager.living()),
    }


def rare_views(suite):
    """What is compared when the model says that it changed, and at the end of a run."""
    return {
        **_session_views(suite, suite.manager.sessions),
        **_ledger_views(suite),
        **_registry_views(suite),
        **_court_views(suite),
    }


def lens_weights(suite, category, price_cap):
    """The weights of one category."""
    return {View("lens", "weights", (keccak(text=category), price_cap)): suite.weights(category, price_cap)}


def lens_order(suite, category, price_cap, seed):
    """The order of one category."""
    order = list(suite.ranking(category, seed, price_cap).order)
    return {View("lens", "order", (keccak(text=category), price_cap, seed, 16)): order}


def _balances(suite):
    holders = [*suite.accounts, suite.registry.address, suite.manager.address, suite.court.address]
    tokens = {"stake": suite.stake, "payment": suite.payment}
    views: dict[View, Any] = {
        View(name, "balanceOf", (holder,)): token.balance(holder)
        for name, token in tokens.items()
        for holder in (*holders, token.address)
    }
    return views | {View(name, "answer", ()): token.answer for name, token in tokens.items()}


def _node_views(suite):
    views = {}
    for node_id, node in suite.registry.nodes.items():
        packed = (node.operator, node.stake, node.unbonding, node.release_at, node.holds)
        views[View("registry", "nodes", (node_id,))] = (
            *packed,
            suite.registry.slots(node_id),
            len(node.capabilities),
            node.endpoint,
        )
        views[View("manager", "active_sessions", (node_id,))] = suite.manager.active(node_id)
    for service_id, service in suite.registry.services.items():
        node = suite.registry.nodes[service.node_id]
        views[View("registry", "listing_of", (service_id,))] = (
            service.node_id,
            node.operator,
            service.category_id,
            service.price,
            node.stake,
            suite.registry.slots(service.node_id),
            suite.registry.routable(service_id),
        )
    return views


def _account_views(suite):
    views = {}
    for account in (*suite.accounts, suite.payment.address):
        views[View("manager", "credit_of", (account,))] = suite.manager.credits.get(account, 0)
        views[View("court", "credit_of", (account,))] = suite.court.credits.get(account, 0)
        views[View("manager", "draws", (account,))] = suite.manager.draws(account)
    return views


def _session_views(suite, sessions):
    return {
        View("manager", "sessions", (i,)): tuple(getattr(session, field.name) for field in fields(session))
        for i, session in sessions.items()
    }


def _ledger_views(suite):
    views = {}
    for i, session in suite.manager.sessions.items():
        score = suite.reputation.scores.get(i)
        views[View("reputation", "score_of", (i,))] = (score is not None, score.score if score else 0)
        records = suite.experience.of(i)
        cost = sum(record.cost for record in records.values())
        views[View("experience", "records_of", (i,))] = (cost, len(records))
        for tool in records:
            views[View("experience", "attested", (i, keccak(text=tool)))] = True
        settled, turns_at = session.settled_at > 0, session.settled_at or session.closes_at
        parts = (session.client, session.operator, session.service_id, session.node_id, settled, turns_at)
        views[View("manager", "settlement_of", (i,))] = (*parts, session.paid + session.deposit, session.calls)
    return views


def _registry_views(suite):
    registry = suite.registry
    views = {
        View("registry", "node_count", ()): len(registry.nodes),
        View("registry", "service_count", ()): len(registry.services),
    }
    for node_id, node in registry.nodes.items():
        views[View("registry", "pending_operator", (node_id,))] = node.pending
        for capability in node.capabilities:
            views[View("registry", "has_capability", (node_id, keccak(text=capability)))] = True
    for service_id, service in registry.services.items():
        fields_of = (service.node_id, service.category_id, service.price, service.active, service.metadata_uri)
        views[View("registry", "services", (service_id,))] = fields_of
        views[View("registry", "is_routable", (service_id,))] = registry.routable(service_id)
        views[View("registry", "service_of", (service.node_id, service.category_id))] = service_id
    for category in {service.category for service in registry.services.values()}:
        ids, key = registry.listed(category), keccak(text=category)
        views[View("registry", "category_size", (key,))] = len(ids)
        views |= {View("registry", "category_service", (key, position)): i for position, i in enumerate(ids)}
    return views


def _court_views(suite):
    court = suite.court
    views = {
        View("court", "dispute_count", ()): len(court.disputes),
        View("court", "arbiter", ()): court.arbiter,
        View("court", "pending_arbiter", ()): court.pending,
    }
    for i, dispute in court.disputes.items():
        views[View("court", "disputes", (i,))] = tuple(getattr(dispute, field.name) for field in fields(dispute))
        views[View("court", "dispute_of", (dispute.session_id,))] = i
    return views
