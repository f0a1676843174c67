# SPDX-License-Identifier: MIT
"""RocksDB: a database filled at random, compacted in the background, then read by two threads."""
import re

from hakmem_lab.apps import App, BadOutput, Stage, digest

FOUND = re.compile(r"(\w+) +:.*\((\d+) of (\d+) found\)")


class RocksDb(App):
    name = "rocksdb"
    title = "RocksDB, fill, read and scan"
    text = ("db_bench writes keys in random order through small buffers, so that tables are flushed and merged in "
            "the background; then two threads read with a small cache.")
    programs = ("db_bench", "ldb")
    packages = ("rocksdb-tools",)
    metric = "wall"
    threads = 2

    def run(self, stage: Stage) -> str:
        folder, count = stage.scratch / "db", self.count(100000, stage.scale)
        same = ["db_bench", f"--db={folder}", "--seed=42", f"--num={count}", "--value_size=100", "--disable_wal=true",
                "--compression_type=lz4", "--write_buffer_size=2000000", "--target_file_size_base=2000000",
                "--cache_size=1000000", "--verify_checksum=true"]
        stage.run(same + ["--benchmarks=fillrandom,flush", "--threads=1"])
        read = stage.run(same + ["--benchmarks=readrandom,multireadrandom", "--use_existing_db=true", "--threads=2",
                                 f"--reads={count // 2}"])
        found = FOUND.findall(read.stdout.decode(errors="replace"))
        if not found:
            raise BadOutput("no line says how many keys were found")
        scan = stage.plain(["ldb", f"--db={folder}", "scan", "--hex"])
        return digest(scan.stdout, found)
