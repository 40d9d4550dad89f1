"As many threads as there are processors for each of pytest's workers: more would only get in each other's way."

import os
import signal

import pytest

# a thread that waits for the others must not take their core
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    threads = max(1, (os.cpu_count() or 1) // int(workers))
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))

# fixtures for all tests
from browsing import browser  # noqa: F401
from building import address, build, site  # noqa: F401


@pytest.fixture
def usual_signals():
    "As in a shell: what is started in the background or by nohup ignores some, and so do its children."
    before = {
        number: signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGTERM, signal.SIGHUP)
    }
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
