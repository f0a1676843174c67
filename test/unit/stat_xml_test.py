#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The XML report parses, and has the shape programs that read malloc_info expect.

Usage: stat_xml_test.py PROGRAM   (the runner of stat)
"""
import subprocess
import sys
import xml.etree.ElementTree


def main():
    text = subprocess.run([sys.argv[1], "report", "--xml"], stdout=subprocess.PIPE, check=True).stdout
    root = xml.etree.ElementTree.fromstring(text)
    assert root.tag == "malloc" and root.get("version") == "1", root.attrib
    assert root.get("allocator") == "hakmem", root.attrib
    classes = root.findall("heap/sizes/class")
    assert classes, "no class in use"
    sizes = [int(row.get("bytes")) for row in classes]
    assert sizes == sorted(set(sizes)), sizes
    for row in classes:
        assert 0 <= int(row.get("free")) <= int(row.get("blocks")), row.attrib
        assert int(row.get("slabs")) > 0, row.attrib
    figures = {row.get("name"): int(row.get("value")) for row in root.findall("figure")}
    assert len(figures) == len(root.findall("figure")), "a figure comes twice"
    mapped = figures["mapped_bytes"]
    assert figures["in_use_bytes"] <= mapped, figures
    for path in ("system[@type='current']", "aspace[@type='total']"):
        assert int(root.find(path).get("size")) == mapped, path
    print(f"{len(classes)} classes, {len(figures)} figures")


if __name__ == "__main__":
    main()
