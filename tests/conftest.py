"As many threads as there are processors for each of pytest's workers; more only get into each other's way."

import os

os.environ.setdefault(
    "OMP_WAIT_POLICY", "passive"
)  # a thread that waits for the others must not take their core
if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    os.environ.setdefault(
        "OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // int(workers)))
    )

from browsing import browser
from building import address, build, site
