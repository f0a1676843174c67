# SPDX-License-Identifier: MIT
"""The lab: hakmem and its peers on the same work, in time, memory, faults, system calls and tail latency."""
