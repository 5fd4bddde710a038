"""The methods that experiments compare: how games are played, and what is learned first."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from vaeiw_jax.playing.episodes import PROTOCOLS
from vaeiw_jax.vae.config import ModelConfig


@dataclass(frozen=True)
class Method:
    """A column of a table: how games are played."""

    name: str
    """Names its folder: methods of one name, in whatever experiments, are the same and are run once."""
    title: str
    settings: tuple[tuple[str, Any], ...] = ()
    """The settings of the episode, by flag, in which it differs from the defaults."""
    vae: ModelConfig | None = None
    """The VAE whose features it uses, if one is to be trained."""
    learning: tuple[tuple[str, Any], ...] = ()
    """The settings of that training, and of collecting screens for it, in which it differs from what is asked for."""
    online: bool = False
    """Whether it learns while it plays, instead of collecting screens first."""

    def with_settings(self, name: str, title: str, **settings: Any) -> "Method":
        """A variant of the method under another name."""
        merged = dict(self.settings) | settings
        return dataclasses.replace(
            self, name=name, title=title, settings=tuple(sorted(merged.items()))
        )


def at_nodes(method: Method, nodes: int) -> Method:
    """The method with a budget in nodes alone."""
    return method.with_settings(
        f"{method.name}_{nodes}_nodes",
        f"{method.title}, {nodes:,} nodes",
        budget_nodes=nodes,
        budget_seconds=None,
    )


def _method(name: str, title: str, vae: ModelConfig | None = None, **settings: Any) -> Method:
    settings.setdefault("features", "bprost" if vae is None else "vae")
    return Method(name, title, tuple(sorted(settings.items())), vae)


DISCRETE = ModelConfig()
GAUSSIAN = ModelConfig(latent="15x15x5", latent_kind="gaussian")

IW = _method("iw", "IW B-PROST", planner="iw", risk_averse=False)
ROLLOUT_IW_RA = _method("rollout_iw_ra", "RA RolloutIW B-PROST")
ROLLOUT_IW = _method("rollout_iw", "RolloutIW B-PROST", risk_averse=False)
ROLLOUT_IW_32S = ROLLOUT_IW.with_settings(
    "rollout_iw_32s", "RolloutIW B-PROST, 32 s", budget_seconds=32.0
)
ROLLOUT_IW_RAM_RA = _method("rollout_iw_ram_ra", "RA RolloutIW RAM", features="ram")
VAE_IW_RA = _method("vae_iw_ra", "RA VAE-IW", DISCRETE)
VAE_IW_RECOMMENDED_RA = VAE_IW_RA.with_settings(
    "vae_iw_recommended_ra", "RA VAE-IW, recommended", **PROTOCOLS["recommended"]
)
VAE_IW = _method("vae_iw", "VAE-IW", DISCRETE, risk_averse=False)
VAE_IW_32S = VAE_IW.with_settings("vae_iw_32s", "VAE-IW, 32 s", budget_seconds=32.0)
VAE_IW_32S_RA = VAE_IW_RA.with_settings("vae_iw_32s_ra", "RA VAE-IW, 32 s", budget_seconds=32.0)
VAE_4X4_RA = _method("vae_iw_4x4x200_ra", "RA VAE-IW 4x4x200", ModelConfig(latent="4x4x200"))
VAE_BETA_RA = _method("vae_iw_beta_1e-3_ra", "RA VAE-IW β = 10⁻³", ModelConfig(beta=1e-3))
VAE_6_BIT_RA = _method(
    "vae_iw_6_bit_ra", "RA VAE-IW continuous, 6 bit", GAUSSIAN, quantisation_bits=6
)
VAE_4_BIT_RA = _method(
    "vae_iw_4_bit_ra", "RA VAE-IW continuous, 4 bit", GAUSSIAN, quantisation_bits=4
)
RANDOM = _method("random", "random play", planner="random")


def _in_the_table(name: str, title: str, **settings: Any) -> Method:
    """100 nodes a decision, as Olive and pi-HIW have; 18,000 emulator frames, the limit of AAAI 2018."""
    budget: dict[str, Any] = {
        "budget_nodes": 100,
        "budget_seconds": None,
        "max_emulator_frames": 18_000,
    }
    return _method(name, title, None, **budget, **settings)


TABLE_METHODS = (
    _in_the_table("random_play", "random play", planner="random"),
    _in_the_table("rollout_iw_bprost", "RolloutIW B-PROST"),
    _in_the_table("rollout_iw_ram", "RolloutIW RAM", features="ram"),
    _in_the_table("vae_iw_universal", "VAE-IW", features="vae:universal"),
    _in_the_table(
        "vae_iw_recommended",
        "VAE-IW, recommended",
        **{"features": "vae:universal"} | PROTOCOLS["recommended"],
    ),
)
"""Of the results that come with the project."""


def _of_symbols(name: str, title: str, **settings: Any) -> Method:
    budget: dict[str, Any] = {"budget_nodes": 150, "budget_seconds": None, "max_actions": 300}
    return _method(name, title, None, **budget, **{"features": "vae:universal"} | settings)


SYMBOLS = (
    _of_symbols("symbols_bprost", "B-PROST", features="bprost"),
    _of_symbols("symbols_true", "true bits (the paper)"),
    _of_symbols("symbols_noise", "true bits, noise (published code)", noise=True),
    _of_symbols("symbols_either", "either value", literals="either"),
    _of_symbols("symbols_unusual", "unusual bits", literals="unusual"),
    _of_symbols("symbols_true_changes", "true bits, changes", changes=True),
    _of_symbols("symbols_either_changes", "either value, changes", literals="either", changes=True),
    _of_symbols("symbols_unusual_changes", "unusual, changes", literals="unusual", changes=True),
    _of_symbols(
        "symbols_either_changes_widened",
        "true bits, widened",
        **{"literals": "either", "changes": True, "widen": True},
    ),
    _of_symbols("symbols_unusual_pairs", "pairs of unusual bits", literals="unusual", width=2),
    _of_symbols(
        "symbols_unusual_changes_widened",
        "unusual bits, widened",
        **{"literals": "unusual", "changes": True, "widen": True},
    ),
    _of_symbols(
        "symbols_true_longest_top_two",
        "true bits, longest ties, top-two Thompson",
        **{"zero_ties": "longest", "action_choice": "top_two"},
    ),
    _of_symbols(
        "symbols_either_longest_top_two",
        "either value, longest ties, top-two Thompson",
        **{"literals": "either", "zero_ties": "longest", "action_choice": "top_two"},
    ),
    _of_symbols("symbols_noise_longest", "noise, longest ties", noise=True, zero_ties="longest"),
    _of_symbols(
        "symbols_noise_longest_top_two",
        "noise, longest ties, top-two Thompson",
        **{"noise": True, "zero_ties": "longest", "action_choice": "top_two"},
    ),
)
"""What of a learned code is an atom, and together with what search."""


def _of_searches(name: str, title: str, **settings: Any) -> Method:
    budget: dict[str, Any] = {"budget_nodes": 100, "budget_seconds": None, "max_actions": 300}
    return _method(name, title, None, **budget, **{"features": "vae:universal"} | settings)


_ORIGINAL = "Bandres et al., 2018"
_OLIVE, _PI_IW = "Ayton and Asai, 2022", "after Junyent et al., 2019"
SEARCHES = (
    _of_searches("searches_uniform", "uniform (the paper)"),
    _of_searches("searches_longest", f"longest ties ({_ORIGINAL})", zero_ties="longest"),
    _of_searches("searches_untried", f"untried as 0 ({_ORIGINAL})", untried_as_zero=True),
    _of_searches("searches_top_two", f"top-two Thompson ({_OLIVE})", action_choice="top_two"),
    _of_searches(
        "searches_top_two_rewards",
        f"top-two Thompson, of rewards ({_OLIVE})",
        **{"action_choice": "top_two", "choice_returns": "reward"},
    ),
    _of_searches("searches_thompson", f"Thompson ({_OLIVE})", action_choice="thompson"),
    _of_searches("searches_ucb1", f"UCB1 ({_OLIVE})", action_choice="ucb1"),
    _of_searches("searches_maximum", f"maximum ({_OLIVE})", action_choice="maximum"),
    _of_searches("searches_policy", f"policy, half of the choices ({_PI_IW})", policy_share=0.5),
    _of_searches(
        "searches_policy_ranks",
        f"policy by ranks, half of the choices ({_PI_IW})",
        **{"policy_share": 0.5, "policy_target": "rank", "policy_temperature": 0.1},
    ),
    _of_searches(
        "searches_top_two_longest",
        "top-two Thompson, longest ties",
        **{"action_choice": "top_two", "zero_ties": "longest"},
    ),
    _of_searches(
        "searches_top_two_rewards_longest",
        "top-two Thompson, of rewards, longest ties",
        **{"action_choice": "top_two", "choice_returns": "reward", "zero_ties": "longest"},
    ),
)
"""How a rollout chooses its actions."""

_CALLS = 100_000


def _with_learned_vae(
    method: Method, learning: dict[str, Any], online: bool = False, start_from: str = "universal"
) -> Method:
    """The method with a VAE that is trained for the game, by default from the universal one on."""
    start = {"start_from": start_from, "batch_size": 8, "learning_rate_end": 1e-5}
    start["learning_rate"] = 3e-4 if start_from else 1e-3
    return dataclasses.replace(
        method.with_settings(method.name, method.title, features="vae"),
        vae=DISCRETE,
        learning=tuple(sorted({**start, **learning}.items())),
        online=online,
    )


def _of_olive(name: str, title: str, online: bool, learning: dict[str, Any]) -> Method:
    """Olive's search with 100 nodes a decision."""
    return _with_learned_vae(_of_searches(name, title, action_choice="top_two"), learning, online)


OLIVE = (
    _of_searches("olive_universal", "the universal VAE as it is", action_choice="top_two"),
    _of_olive(
        "olive_offline",
        "trained before it plays, on screens of B-PROST's games",
        online=False,
        learning={"num_screens": 5 * _CALLS // 200, "collect_nodes": 200, "epochs": 3},
    ),
    _of_olive(
        "olive_online",
        f"trained while it plays ({_OLIVE})",
        online=True,
        learning={
            "simulator_calls": _CALLS,
            "episode_calls": _CALLS // 5,
            "candidates": 1000,
            "epochs": 1,
            "evaluations": 0,
        },
    ),
)
"""What a VAE learns from 10^5 simulator calls. Offline these are 500 decisions with five screens each; online they are
five games or more of at most 20,000 calls with 500 screens each. Training is on 7,500 frames in all, or with more games
on more."""

_OWN_SCREENS = {"num_screens": 1500, "collect_nodes": 100}
_VAES_BPROST = _of_symbols("vaes_bprost", "B-PROST", features="bprost")
_VAES_UNIVERSAL = _of_symbols("vaes_universal", "the universal VAE")
LEFT_OUT = (
    _VAES_BPROST,
    _VAES_UNIVERSAL,
    _of_symbols("vaes_left_out", "a VAE that never saw the game", features="vae:left_out"),
)
"""What the universal VAE is worth in games it was not trained on."""

OWN_VAES = (
    _VAES_BPROST,
    _VAES_UNIVERSAL,
    _with_learned_vae(
        _of_symbols("vaes_fine_tuned", "the universal VAE, fine-tuned"),
        {**_OWN_SCREENS, "epochs": 3},
    ),
    _with_learned_vae(
        _of_symbols("vaes_fine_tuned_longer", "the universal VAE, fine-tuned longer"),
        {**_OWN_SCREENS, "epochs": 9},
    ),
    _with_learned_vae(
        _of_symbols("vaes_from_scratch", "the game's own VAE, from scratch"),
        {**_OWN_SCREENS, "epochs": 12},
        start_from="",
    ),
)
"""What a VAE of the game's own is worth. Fine-tuned is as `launch.pipeline --preset=laptop` does it, and three times as
long, ten minutes on one core; from scratch, on the same screens, takes four times as long."""
