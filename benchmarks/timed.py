"""Run a command and print its elapsed seconds, its CPU seconds, and its peak memory in MiB.

The peak memory of a new process includes that of its parent at the start, so this script imports as little as
possible.
"""

import os
import sys
import time

start = time.perf_counter()
child = os.posix_spawnp(
    sys.argv[1],
    sys.argv[1:],
    os.environ,
    file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
)
_, status, used = os.wait4(child, 0)
print(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(os.waitstatus_to_exitcode(status))
