#!/bin/sh
# SPDX-License-Identifier: MIT
# ./hakmem release --check passes, and refuses a version that does not agree and a symbol that went.
set -eu
# shellcheck source=test/package/package.sh
. "$HAKMEM_SOURCE/test/package/package.sh"
expect 0 locked release --check
for line in "versions and changelog agree" "the ABI is that of test/golden/symbols.txt" "two folders, the same bits" "the crate is whole"; do
    says out "ok    $line"
done
[ -s "$work/package/SHA256SUMS" ] || fail "no checksums"
python3 -c 'import json, sys; json.load(open(sys.argv[1]))["bomFormat"]' "$work"/package/*.cdx.json || fail "no bill of materials"
expect 0 python3 -B - "$HAKMEM_SOURCE" "$work" <<'PYTHON'
import pathlib, sys
sys.path.insert(0, sys.argv[1] + "/tools")
from hakmem_package import release, stage
work = pathlib.Path(sys.argv[2])
library = stage.ROOT / "build" / "release" / "libhakmem.so"
release.ABI = work / "symbols.txt"
release.ABI.write_text("\n".join([*release.exported(library)[1:], "hak_gone", ""]))
found = release.abi(library)
assert [one.split(":")[0] for one in found] == ["gone", "new"], found
stage.version = lambda: "9.9.9"
assert "soname" in release.abi(library)[0]
assert len(release.versions()) >= 3, release.versions()
PYTHON
exit $failed
