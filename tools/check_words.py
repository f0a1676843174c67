#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Refuses private words that were given up for a word of the field, in the source and in the pages.

The glossary of src/base/words.h has the words to use. The ledger (docs/experiments) and the changelog are history and
keep the words of their time.
"""
import argparse
import re
import sys
from pathlib import Path

PLACES = ("src/**/*", "docs/*.md", "docs/schema/*", "*.md", "bench/README.md", "bench/results/README.md", "test/README.md")
HISTORY = ("CHANGELOG.md",)
WORDS = {  # the word as it was written -> the word to use
    r"\bhunt\w*": "search for a free block (front/find_free.c)",
    r"\w*fast_stays": "hak_realloc_in_place",
    r"\brare\.c": "cold.c",
    r"\w*owner_(?:enter|leave)\b": "lock, unlock",
    r"\w*lacks_tags": "has_purged_pages",
    r"\bhak_owner_(?:add|load|store)\b": "hak_single_writer_add, _load, _store",
    r"\w*slow_malloc_medium": "hak_malloc_medium",
    r"\bback\[": "units_to_first",
    r"\bresident\.c": "large/residency.c",
    r"\blife/next\.c": "front/underlying.c",
    r"\bpolicy/|\bpressure\.c": "reclaim/",
    r"\bmidway": "in_unlocked_update",
    r"\bguests?\b": "fallback tcache",
    r"\bspill\w*": "flush",
    r"\bnext allocator": "underlying allocator",
    r"\bhand(?:s|ed|ing)? over\b": "send, flush",
    r"\b\w*(?:owner|slab|large)_(?:\w*_)?(?:holes|spared?)\b": "idle pages, purged pages; give_back",
    r"\btend(?:ed|s|ing)?\b": "maintain",
    r"(?<!-)\bdear(?:er)?\b(?!-)|\w*_dear\b": "slow, costly",
    r"(?<![a-z])deeds?(?![a-z])|\w*accus\w*": "event, report",
    r"\w*again_bytes": "refaulted_bytes",
    r"\w*residence": "RSS by cause (observe/rss.c)",
    r"\b(?:(?:for|by|to|in|of|only|also|but) who|whoever)\b|\bwho (?:looks|finds|has|is|wants|waits|reads)\b": "name the noun",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--list", action="store_true", help="print the patterns")
    options = parser.parse_args()
    if options.list:
        print("\n".join(WORDS))
        return
    paths = sorted({path for place in PLACES for path in options.root.glob(place)
                    if path.is_file() and path.name not in HISTORY})
    errors = []
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            errors += [f"{path.relative_to(options.root)}:{number}: '{match[0]}': {better}"
                       for word, better in WORDS.items() for match in re.finditer(word, line, re.I)]
    if errors:
        sys.exit("\n".join("check_words: " + error for error in errors))
    print(f"{len(paths)} files have none of {len(WORDS)} private words")


if __name__ == "__main__":
    main()
