import pytest

from vaeiw_jax.errors import UserError
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.policies import PolicyConfig


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"policy_share": 1.5}, "policy_share must be from 0 to 1, not 1.5"),
        ({"policy_hidden": 32}, "policy_hidden=32 changes nothing while policy_share is 0"),
        ({"policy": "runs/pong"}, "policy=runs/pong changes nothing while policy_share is 0"),
        ({"policy_share": 0.5, "policy_target": "sofmax"}, "did you mean 'softmax'"),
        ({"policy_share": 0.5, "policy_learns": False}, "needs a policy that was learned before"),
        (
            {"policy_share": 0.5, "policy": "x", "policy_learns": False, "policy_steps": 8},
            "policy_steps=8 changes nothing where policy_learns is off",
        ),
        (
            {"policy_share": 0.5, "policy_target": "best", "policy_temperature": 2.0},
            "policy_temperature=2.0 changes nothing with policy_target=best",
        ),
        ({"policy_share": 0.5, "policy_replay": 8}, "32 decisions are never kept"),
        ({"policy_share": 0.5, "policy_temperature": 0.0}, "policy_temperature must be above 0"),
        ({"policy_share": 0.5, "policy_steps": 0}, "policy_steps must be at least 1"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        PolicyConfig(**settings)


@pytest.mark.parametrize("other", ["iw", "random"])
def test_a_policy_needs_rollouts(other):
    with pytest.raises(UserError, match=r"policy_share=0\.5 is for the planner rollout_iw"):
        EpisodeConfig.of("Pong", planner=other, policy_share=0.5)
