"""The command `vaeiw`, which runs the others: `vaeiw play --game=Pong` is `python -m launch.play --game=Pong`."""

import ast
import runpy
import sys
from pathlib import Path

from vaeiw_jax.errors import unknown


def commands() -> dict[str, str]:
    """What each command does, by name: every module here with a `main`, and the first line of its docstring."""
    found: dict[str, str] = {}
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        module = ast.parse(path.read_text())
        if any(isinstance(part, ast.FunctionDef) and part.name == "main" for part in module.body):
            found[path.stem] = (ast.get_docstring(module) or "").partition("\n")[0]
    return found


def main() -> None:
    known = commands()
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help", "help"):
        width = max(map(len, known))
        print("vaeiw COMMAND --flag=value ...\n")
        print("\n".join(f"  {name:<{width}}  {does}" for name, does in known.items()))
        print("\nvaeiw COMMAND --help tells the flags of a command.")
        return
    name = sys.argv.pop(1)
    if name not in known:
        sys.exit(f"error: {unknown('command', name, known)}")
    runpy.run_module(f"launch.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
