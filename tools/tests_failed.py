#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What failed in reports of ctest (JUnit): each test's name and the end of what it printed.

    tests_failed.py REPORT...
"""
import sys
from xml.etree import ElementTree

LINES = 15  # of each test's output


def main(reports):
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            if case.get("status") != "fail":
                continue
            why = case.find("failure").get("message") or "no message"
            print(f"\nfailed: {case.get('name')}, {float(case.get('time')):.1f} s, {why}")
            for line in (case.findtext("system-out") or "").splitlines()[-LINES:]:
                print(f"    {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
