"""Estimate requests, bytes, hours and cost of converting many models from bucket to bucket.

    python examples/estimate_batch.py [--workers 64] [--get 0.0004] [--put 0.005] [--vcpu-hour 0.045]

Change COLLECTION to the numbers and sizes of your models. Prices are in dollars: of 1,000 requests, and of an
hour of a vCPU. docs/platform-teams.md describes the formulas and how the figures were measured.
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
COLLECTION = {
    "below 100 KB": (300_000, 30 * KB),
    "100 KB to 64 MB": (500_000, 12 * MB),
    "64 MB to 1 GB": (150_000, 250 * MB),
    "above 1 GB": (50_000, 1_130 * MB),
}
"""Number of models and mean size in bytes: 1,000,000 models and 100 TB."""

COPIED_FROM, PART = 64 << 20, 256 << 20
"""Size of models from which the store copies weights itself, and the largest part that it copies at once."""

READS, WRITES = 7, 1
"""Requests to read and to write a model below `COPIED_FROM`; those below 256 KB need three reads."""

READS_OF_LARGE, WRITES_OF_LARGE = 12, 4
"""Requests of a larger model, without those that copy parts."""

MOVED_OF_LARGE = 11 * MB
"""Bytes that a worker moves for a larger model: its graph, and parts that the store cannot copy."""

CPU_SECONDS, CPU_SECONDS_PER_GB = 0.02, 2.0
"""Time of a worker for a model, and for the bytes that it moves."""

REQUEST_SECONDS, COPY_BYTES_PER_SECOND = 0.02, 200 * MB
"""Assumed latency of a request, and assumed speed at which the store copies for one worker."""


class Estimate(NamedTuple):
    """Sums over models."""

    models: int
    bytes: float
    reads: float
    writes: float
    moved: float
    """Bytes that workers receive and send."""
    hours: float
    """Hours of one worker."""

    def cost(self, get: float, put: float, vcpu_hour: float) -> float:
        """Return the price in dollars, without storage; moving bytes within a region is free."""
        return self.reads / 1_000 * get + self.writes / 1_000 * put + self.hours * vcpu_hour


def estimate(models: int, size: float) -> Estimate:
    """Return the estimate for a number of models of a mean size."""
    if size < COPIED_FROM:
        reads, writes, moved, copied = READS, WRITES, 2 * size, 0.0
    else:
        writes = WRITES_OF_LARGE + math.ceil(size / PART)
        reads, moved, copied = READS_OF_LARGE, float(MOVED_OF_LARGE), size
    seconds = CPU_SECONDS + moved / GB * CPU_SECONDS_PER_GB
    seconds += (reads + writes) * REQUEST_SECONDS + copied / COPY_BYTES_PER_SECOND
    sums = (models * each for each in (size, reads, writes, moved, seconds / 3600))
    return Estimate(models, *sums)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--get", type=float, default=0.0004)
    parser.add_argument("--put", type=float, default=0.005)
    parser.add_argument("--vcpu-hour", type=float, default=0.045)
    options = parser.parse_args()
    rows = {name: estimate(*each) for name, each in COLLECTION.items()}
    rows["total"] = Estimate(*map(sum, zip(*rows.values(), strict=True)))
    print(f"| models | number | TB | reads | writes | TB moved | hours | hours / {options.workers} | $ |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, row in rows.items():
        cost = row.cost(options.get, options.put, options.vcpu_hour)
        numbers = f"{row.models:,} | {row.bytes / TB:.2f} | {row.reads:,.0f} | {row.writes:,.0f}"
        times = f"{row.hours:,.0f} | {row.hours / options.workers:,.1f}"
        print(f"| {name} | {numbers} | {row.moved / TB:.2f} | {times} | {cost:,.0f} |")


if __name__ == "__main__":
    main()
