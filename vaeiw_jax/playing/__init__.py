"""Episodes, emulator processes, records of runs, videos, collected screens."""
