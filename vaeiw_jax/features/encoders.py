"""The two ways to run a trained encoder while planning: `xla` and `patches`.

`xla` is the network as JAX compiles it (`vae.encoding.encode`), for batches of up to 16 screens: the one for a GPU or a
TPU. `patches` computes each distinct patch of a screen once (`patches.py`), one screen at a time and without JAX: many
times as fast on a CPU. `auto` is `xla` where JAX finds an accelerator, else `patches`.

Both give the same features, but for values within 1e-4 of where a feature changes. With either, features are a function
of screen and model alone.
"""

import functools
import importlib.metadata
import importlib.util
import os
import pkgutil
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import numpy as np

from vaeiw_jax.features import screen_digest
from vaeiw_jax.features.patch_network import PatchNetwork
from vaeiw_jax.vae import codes
from vaeiw_jax.vae.config import ModelConfig

BATCH_SIZES = (1, 2, 4, 8, 16)
"""The sizes that `xla` has compiled programs for. Other batches are filled up to the next, larger ones are cut."""

CACHED_PROBABILITIES = 1_000
"""Screens whose probabilities `patches` keeps: some 36 MB."""

MARGIN = 1e-3
"""Two batch sizes round differently, but by far less: values this far from where a feature changes are safe."""


class ScreenEncoder(Protocol):
    """A trained encoder, ready to run."""

    batched: bool
    """Whether several screens at once cost less than one after another."""

    def features(self, screens: np.ndarray, draws: np.ndarray | None = None) -> np.ndarray:
        """The features of screens.

        Args:
          screens: uint8[n, rows, columns] of palette colours.
          draws: float64[n, num_latents], uniform in [0, 1), to sample Bernoulli features: one is true where the
            sigmoid of its logit less `shift` exceeds the draw.

        Returns:
          uint8[n, ceil(num_features / 8)], packed as by `np.packbits`.
        """
        ...


class PatchEncoder:
    """The CPU encoder, which computes each distinct patch once. It loads no JAX.

    Args:
      model: which autoencoder.
      variables: its "params" and "batch_stats", as NumPy arrays.
      screen_shape: of the screens it will be given.
      edges: float32[n], where features change (`codes.edges`).
      shift: of the logits of features that are drawn.
    """

    batched = False

    def __init__(
        self,
        model: ModelConfig,
        variables: Mapping[str, Any],
        screen_shape: tuple[int, int],
        edges: np.ndarray,
        shift: float = 0.0,
    ):
        self._model = model
        self._edges = edges
        self._shift = shift
        self._network = PatchNetwork(model, variables, screen_shape)
        self._probabilities: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    def features(self, screens: np.ndarray, draws: np.ndarray | None = None) -> np.ndarray:
        if draws is None:
            bits = [self._bits(self._network.encode(screen)) for screen in screens]
        else:
            bits = [
                row < self._probability(screen) for screen, row in zip(screens, draws, strict=True)
            ]
        return np.stack([np.packbits(row) for row in bits])

    def _probability(self, screen: np.ndarray) -> np.ndarray:
        """float64[num_latents], kept for a while: one screen may be seen with many draws."""
        key = screen_digest.digest(screen)
        with self._lock:
            if key in self._probabilities:
                self._probabilities.move_to_end(key)
                return self._probabilities[key]
        posterior = self._network.encode(screen).ravel().astype(np.float64)
        probability: np.ndarray = 1 / (1 + np.exp(self._shift - posterior))
        with self._lock:
            self._probabilities[key] = probability
            if len(self._probabilities) > CACHED_PROBABILITIES:
                self._probabilities.popitem(last=False)
        return probability

    def _bits(self, posterior: np.ndarray) -> np.ndarray:
        """bool[num_features] of a posterior, float32[H, W, posterior_channels], as `latents.bits_at` gives them."""
        if self._model.latent_kind == "bernoulli":
            return posterior.ravel() > self._edges[0]
        means = posterior[..., : self._model.channels].ravel()
        bins = np.searchsorted(self._edges, means, side="right")
        shifts = np.arange(len(self._edges).bit_length() - 1, -1, -1)
        return (bins[:, None] >> shifts & 1).astype(np.bool_).ravel()


class XLAEncoder:
    """The network as JAX compiles it, on the default device, with one program for each of `BATCH_SIZES`.

    On an accelerator all programs are compiled here, before the first screen; on the CPU each is when a batch of its
    size is first met. Compiled code is kept for the next process (`compilation.keep_compiled_code`).

    Features do not depend on the batch a screen is in: where a value is within `MARGIN` of an edge, the program for a
    single screen decides.

    Args:
      model: which autoencoder.
      variables: its "params" and "batch_stats".
      screen_shape: of the screens it will be given.
      edges: float32[n], where features change (`codes.edges`).
      shift: of the logits of features that are drawn.
    """

    batched = True

    def __init__(
        self,
        model: ModelConfig,
        variables: Mapping[str, Any],
        screen_shape: tuple[int, int],
        edges: np.ndarray,
        shift: float = 0.0,
    ):
        import jax

        from vaeiw_jax import compilation

        compilation.fit_threads()
        compilation.keep_compiled_code()
        self._model = model
        self._screen_shape = screen_shape
        self._shift = np.float32(shift)
        latents = model.num_latents if model.latent_kind == "bernoulli" else 1
        self._edges = np.broadcast_to(edges, (latents, len(edges)))
        self._variables = jax.device_put(variables)
        self._programs: dict[int, Any] = {}
        if jax.default_backend() != "cpu":
            for size in BATCH_SIZES:
                self._program(size)

    def features(self, screens: np.ndarray, draws: np.ndarray | None = None) -> np.ndarray:
        if draws is None:
            edges = np.broadcast_to(self._edges, (len(screens), *self._edges.shape))
        else:
            edges = codes.sampling_edges(draws) + self._shift
        most = BATCH_SIZES[-1]
        return np.concatenate(
            [
                self._batch(screens[start : start + most], edges[start : start + most])
                for start in range(0, len(screens), most)
            ]
        )

    def _batch(self, screens: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """The features of a batch, but of a screen alone where those of a batch may be rounded otherwise."""
        packed, clearance = self._run(screens, edges)
        if len(screens) > 1:
            for i in np.flatnonzero(clearance < MARGIN):
                packed[i] = self._run(screens[i : i + 1], edges[i : i + 1])[0][0]
        return packed

    def _run(self, screens: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features and clearances of a batch as the program of the next size computes them."""
        number = len(screens)
        size = next(size for size in BATCH_SIZES if size >= number)
        filling = ((0, size - number), (0, 0), (0, 0))
        packed, clearance = self._program(size)(
            self._variables, np.pad(screens, filling), np.pad(edges, filling)
        )
        return np.array(packed)[:number], np.asarray(clearance)[:number]

    def _program(self, size: int) -> Any:
        """The compiled function for a batch of this size."""
        if size not in self._programs:
            import jax

            from vaeiw_jax.vae import encoding

            encode = jax.jit(
                functools.partial(encoding.encode, self._model),
                compiler_options=encoding.compiler_options(jax.default_backend()),
            )
            self._programs[size] = encode.lower(
                self._variables,
                jax.ShapeDtypeStruct((size, *self._screen_shape), np.uint8),
                jax.ShapeDtypeStruct((size, *self._edges.shape), np.float32),
            ).compile()
        return self._programs[size]


ENCODERS: dict[str, type[PatchEncoder] | type[XLAEncoder]] = {
    "xla": XLAEncoder,
    "patches": PatchEncoder,
}


def resolved(name: str) -> str:
    """The encoder that a setting means on this machine, `xla` or `patches`."""
    if name != "auto":
        return name
    return "xla" if _has_accelerator() else "patches"


@functools.cache
def _has_accelerator() -> bool:
    """Whether JAX would compute on a GPU or TPU. JAX is loaded only where that is possible."""
    if not accelerator_is_possible(os.environ.get("JAX_PLATFORMS", ""), _accelerator_plugins()):
        return False
    import jax

    return jax.default_backend() != "cpu"


def accelerator_is_possible(platforms: str, plugins: Collection[str]) -> bool:
    """Whether JAX could find an accelerator.

    Args:
      platforms: the environment variable JAX_PLATFORMS, such as "cpu" or "cuda,cpu"; empty if it leaves the choice.
      plugins: installed packages that bring JAX to an accelerator.
    """
    named = [name for name in platforms.split(",") if name]
    return any(name != "cpu" for name in named) if named else bool(plugins)


def _accelerator_plugins() -> set[str]:
    """Installed packages that bring JAX to an accelerator, found the way JAX finds them but without loading it."""
    found = {entry.name for entry in importlib.metadata.entry_points(group="jax_plugins")}
    namespace = importlib.util.find_spec("jax_plugins")
    if namespace is not None and namespace.submodule_search_locations is not None:
        found |= {m.name for m in pkgutil.iter_modules(namespace.submodule_search_locations)}
    return found | {name for name in ("libtpu",) if importlib.util.find_spec(name) is not None}
