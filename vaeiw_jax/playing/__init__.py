"""Episodes, emulator processes, records of runs, films, collected screens."""
