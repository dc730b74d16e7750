"""The time and memory that a command takes, as a whole process of its own.

    python -m companion.pages.process_cost FILE MODULE [ARGUMENTS ...]

runs python -m MODULE, and writes its seconds and gigabytes into FILE.

FILE is written when the command has succeeded, also by sys.exit(0).
"""

import math
import runpy
import sys
import time
from pathlib import Path

from lib.system.files import write_json


def peak_memory() -> float:
    """The largest resident memory of this process so far, in GB (2^30 bytes); NaN on Windows."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux: ru_maxrss would count the process that started this one
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 2**20
    if sys.platform == "win32":
        return math.nan  # the standard library cannot tell there
    import resource  # which Windows has not

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**30  # bytes on macOS


def main() -> None:
    file, module, *arguments = sys.argv[1:]
    started, sys.argv = time.perf_counter(), [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
    write_json(file, {"seconds": round(time.perf_counter() - started, 1), "gb": round(peak_memory(), 2)})


if __name__ == "__main__":
    main()
