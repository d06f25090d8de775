"""A progress bar for `make conformance`, which runs tens of thousands of tests."""

from __future__ import annotations

import os
import sys

import pytest
import torch

# Where several threads write to overlapping elements, the order decides.
torch.set_num_threads(1)


def pytest_configure(config):
    on_worker = hasattr(config, "workerinput")  # of pytest-xdist
    if "OPENREG_CONFORMANCE" in os.environ and not on_worker:
        config.pluginmanager.register(ProgressBar())


class ProgressBar:
    """Stands in for pytest's letters, and names every failure as soon as it is known."""

    def __init__(self):
        from tqdm import tqdm

        interval = 0.5 if sys.stderr.isatty() else 60  # a log keeps every state of the bar
        self._bar = tqdm(unit=" tests", mininterval=interval, smoothing=0)
        self._done = set()
        self._failures = 0

    def pytest_sessionstart(self, session):
        self._session = session

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self, report):
        status = yield
        return status if self._bar.disable else (status[0], "", "")

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._failures += 1
            self._bar.write(f"FAILED {report.nodeid.rpartition('::')[2]}", file=sys.stderr)
            self._bar.set_postfix(failed=self._failures, refresh=False)
        if report.nodeid not in self._done:  # a report each for set-up, call and tear-down
            self._done.add(report.nodeid)
            self._bar.total = self._session.testscollected
            self._bar.update()

    def pytest_sessionfinish(self):
        self._bar.close()  # which disables it; the summary follows
