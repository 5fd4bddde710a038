"""What this machine can do: the suites of `launch.benchmark`."""
