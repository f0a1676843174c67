# SPDX-License-Identifier: MIT
"""Runs in which every process watches many blocks, and the proof that it did: each reports at its end."""

import json

from rig.outcome import Difference

RATE = 100  # 1 in so many small blocks of refills: a process has its region at once


class Watched:
    def __init__(self, base):
        self.folder = base / "reports"
        self.folder.mkdir()
        self.folder.chmod(0o1777)  # servers run as another user

    def options(self):
        return f"guard_rate:{RATE},report:json,report_file:{self.folder}/%p"

    def verdict(self):
        """How many blocks were watched, in how many processes; a Difference if none was."""
        reports = [json.loads(path.read_text()) for path in self.folder.iterdir()]
        counts = [report["events"]["guard_sample"] for report in reports]
        if sum(counts) == 0:
            raise Difference(f"no block was watched by the {len(counts)} processes that reported")
        return (f"{sum(counts)} watched blocks in {sum(map(bool, counts))} of {len(counts)} "
                "processes that reported")
