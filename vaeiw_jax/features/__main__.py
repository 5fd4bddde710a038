"""Compiles the code of all feature sets, so that no first decision waits for it: python -m vaeiw_jax.features"""

from vaeiw_jax.features.numba_compilation import compile_all

if __name__ == "__main__":
    compile_all()
