"""Policies over symbols, learned from the planner's own decisions. JAX is loaded where one learns, not before."""

from vaeiw_jax.policies.config import PolicyConfig
from vaeiw_jax.policies.learner import PolicyLearner
from vaeiw_jax.policies.network import Network

__all__ = ["Network", "PolicyConfig", "PolicyLearner"]
