"""How XLA compiles and runs: code that outlives the process, and no more threads than there are cores to use."""

import hashlib
import os
from pathlib import Path

import jax

from vaeiw_jax.cores import usable_cores


def fit_threads() -> None:
    """Gives XLA as many threads as the process may use cores, unless it was told how many.

    By itself it heeds affinity but no ration of a control group. Call this before anything is computed.
    """
    os.environ.setdefault("NPROC", str(usable_cores()))


def keep_compiled_code() -> None:
    """Lets XLA keep what it compiles in the user's cache directory, unless it was told where to.

    Code is for one kind of CPU: a home directory may be shared by several.
    """
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    cpu = Path("/proc/cpuinfo")
    features = cpu.read_text().partition("\n\n")[0] if cpu.exists() else ""
    lines = [line for line in features.splitlines() if line.startswith(("model name", "flags"))]
    kind = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jax.config.update("jax_compilation_cache_dir", str(home / "vaeiw_jax" / f"xla-{kind}"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
