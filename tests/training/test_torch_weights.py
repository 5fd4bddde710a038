"""Weights across frameworks, there and back."""

import jax
import numpy as np
import pytest
import torch

from tests.vae import pairs
from vaeiw_jax.errors import UserError
from vaeiw_jax.training import torch_weights
from vaeiw_jax.vae.config import ModelConfig


def state_dict_of(config: ModelConfig) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in pairs.reference(config).state_dict().items()}


@pytest.mark.parametrize("name", pairs.MODELS)
def test_weights_come_back_unchanged(name: str) -> None:
    config = pairs.MODELS[name]
    state_dict = state_dict_of(config)
    back = torch_weights.to_torch(config, torch_weights.from_torch(config, state_dict))
    assert back.keys() == state_dict.keys()
    for tensor in back:
        np.testing.assert_array_equal(back[tensor], state_dict[tensor])


@pytest.mark.parametrize("name", pairs.MODELS)
def test_pytorch_loads_what_was_written(name: str, tmp_path) -> None:
    config = pairs.MODELS[name]
    variables = torch_weights.from_torch(config, state_dict_of(config))
    torch_weights.write(tmp_path / "weights.pt", torch_weights.to_torch(config, variables))
    model = pairs.reference(config)
    model.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    jax.tree.map(np.testing.assert_array_equal, pairs.variables_of(model, config), variables)


def test_weights_in_bfloat16_are_read_as_float32(tmp_path) -> None:
    state_dict = pairs.reference(ModelConfig()).state_dict()
    short = {name: tensor.to(torch.bfloat16) for name, tensor in state_dict.items()}
    torch.save(short, tmp_path / "weights.pt")
    read = torch_weights.read(tmp_path / "weights.pt")
    for name, tensor in short.items():
        assert read[name].dtype == np.float32
        np.testing.assert_array_equal(read[name], tensor.float().numpy())


def test_published_layers_have_the_names_of_the_published_code() -> None:
    names = {name.rsplit(".", 1)[0] for name in state_dict_of(pairs.MODELS["published"])}
    expected = {f"{network}.{i}" for network in ("encoder", "decoder") for i in (0, 3, 6)}
    expected |= {
        f"{network}.{i}.block.{j}"
        for network in ("encoder", "decoder")
        for i in (2, 5)
        for j in (0, 2, 4, 6)
    }
    assert names == expected


@pytest.mark.parametrize(
    ("written", "read", "sentence"),
    [
        ("15x15", "published", "no tensor 'encoder.2.block.0.weight'"),
        ("published", "15x15", "no tensor 'encoder.1.block.0.weight'"),
        ("4x4", "15x15", r"'encoder.0.weight' has shape \[64, 1, 3, 3\].* needs \[64, 1, 4, 4\]"),
        ("gaussian", "15x15", r"'encoder.4.weight' has shape \[10, 64, 3, 3\].* \[20, 64, 3, 3\]"),
    ],
)
def test_another_models_weights_are_refused_by_the_first_tensor(written, read, sentence) -> None:
    with pytest.raises(UserError, match=sentence):
        torch_weights.from_torch(pairs.MODELS[read], state_dict_of(pairs.MODELS[written]))


def test_a_tensor_too_many_is_named() -> None:
    state_dict = {**state_dict_of(ModelConfig()), "fc1.weight": np.zeros((2, 2), np.float32)}
    with pytest.raises(UserError, match=r"'fc1.weight' has no place"):
        torch_weights.from_torch(ModelConfig(), state_dict)


def test_a_file_that_would_run_code_is_refused(tmp_path) -> None:
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    torch.save({"weight": Bomb()}, tmp_path / "bomb.pt")
    with pytest.raises(UserError, match=r"bomb.pt cannot be read as weights"):
        torch_weights.read(tmp_path / "bomb.pt")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [b"", b"not weights", b"PK\x03\x04 torn"])
def test_a_damaged_file_is_refused_in_a_sentence(content: bytes, tmp_path) -> None:
    (tmp_path / "weights.pt").write_bytes(content)
    with pytest.raises(UserError, match=r"weights.pt cannot be read as weights"):
        torch_weights.read(tmp_path / "weights.pt")


def test_a_file_of_something_else_is_refused(tmp_path) -> None:
    torch.save([1, 2, 3], tmp_path / "list.pt")
    with pytest.raises(UserError, match="does not hold a state_dict"):
        torch_weights.read(tmp_path / "list.pt")


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(UserError, match=r"there is no file .*nowhere.pt"):
        torch_weights.read(tmp_path / "nowhere.pt")
