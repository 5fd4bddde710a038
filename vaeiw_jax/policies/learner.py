"""A policy that learns as a game is played."""

import json
from typing import Any

import numpy as np

from vaeiw_jax import durable
from vaeiw_jax.policies.config import PolicyConfig
from vaeiw_jax.policies.network import (
    Network,
    Parameters,
    initial_parameters,
    num_rows,
    rows_of,
    symlog,
)
from vaeiw_jax.policies.replay import Replay
from vaeiw_jax.policies.targets import target


class PolicyLearner:
    """Keeps the last decisions and takes a few gradient steps after each, on the CPU.

    Args:
      config: how to learn, or that nothing is learned.
      num_features, num_actions: of the planner.
      rng: draws initial weights and decisions to learn from.
      parameters: of a policy to start from.

    Attributes:
      policy: what the planner asks. Its parameters are replaced as it learns.
      losses: one for each decision, NaN where nothing was learned.
    """

    def __init__(
        self,
        config: PolicyConfig,
        num_features: int,
        num_actions: int,
        rng: np.random.Generator,
        parameters: Parameters | None = None,
    ):
        self._config = config
        self._rng = rng
        if parameters is None:
            hidden, value = config.policy_hidden, config.policy_value
            parameters = initial_parameters(num_features, num_actions, hidden, value, rng)
        self.policy = Network(
            parameters, num_features, num_actions, config.policy_share, config.policy_value
        )
        self.losses: list[float] = []
        if config.policy_learns:
            self._replay = Replay(config.policy_replay, num_rows(num_features), num_actions)
            self._state = self._initial_state()

    def learn(self, atoms: np.ndarray, values: np.ndarray) -> None:
        """Learns from a decision, where it has something to teach.

        That is if two actions were tried, and not all of them are ruled out.

        Args:
          atoms: int32[n], true at the root.
          values: float64[num_actions], the returns of its actions; NaN where one was not tried, minus infinity where it
            is ruled out.
        """
        config, tried = self._config, ~np.isnan(values)
        loss = np.nan
        if config.policy_learns and tried.sum() > 1 and np.isfinite(values[tried].max()):
            rows = rows_of(atoms, self.policy.num_features)
            probabilities = target(values, config.policy_target, config.policy_temperature)
            best = float(symlog(values[tried].max()))
            self._replay.add(rows, probabilities, tried, best)
            if len(self._replay) >= config.policy_batch_size:
                loss = self._train()
        self.losses.append(loss)

    def _initial_state(self) -> Any:
        import jax

        from vaeiw_jax import compilation
        from vaeiw_jax.policies import learning

        compilation.fit_threads()
        compilation.keep_compiled_code()
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            return learning.optimiser(self._config).init(self.policy.parameters)

    def _train(self) -> float:
        import jax

        from vaeiw_jax.policies import learning

        config, policy = self._config, self.policy
        batches = self._replay.sample((config.policy_steps, config.policy_batch_size), self._rng)
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            parameters, self._state, loss = learning.train(
                policy.parameters, self._state, batches, config, num_rows(policy.num_features)
            )
        policy.parameters = {name: np.asarray(array) for name, array in parameters.items()}
        return float(loss)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """All that later choices and steps depend on."""
        arrays = {f"parameters.{name}": array for name, array in self.policy.parameters.items()}
        arrays["losses"] = np.array(self.losses, np.float64)
        arrays["rng"] = np.array(json.dumps(self._rng.bit_generator.state))
        if self._config.policy_learns:
            import jax

            leaves = jax.tree.leaves(self._state)
            arrays |= {f"optimiser.{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
            kept = self._replay.to_arrays()
            arrays |= {f"replay.{name}": array for name, array in kept.items()}
        return arrays

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Goes back to what `to_arrays` described."""
        known = self.policy.parameters
        self.policy.parameters = {name: arrays[f"parameters.{name}"] for name in known}
        self.losses = arrays["losses"].tolist()
        self._rng.bit_generator.state = json.loads(str(arrays["rng"]))
        if self._config.policy_learns:
            import jax

            leaves, structure = jax.tree.flatten(self._state)
            saved = [arrays[f"optimiser.{i}"] for i in range(len(leaves))]
            self._state = jax.tree.unflatten(structure, saved)
            self._replay.restore(durable.part(arrays, "replay"))
