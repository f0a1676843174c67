# SPDX-License-Identifier: MIT
"""`hakmem exporter`: one Prometheus exporter per host for all processes on hakmem, which it reads from outside."""
