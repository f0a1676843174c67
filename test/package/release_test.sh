#!/bin/sh
# SPDX-License-Identifier: MIT
# ./hakmem release --check passes, and refuses a version that does not agree and a symbol that went.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
export HAKMEM_PACKAGE_DIR="$work/package"
expect 0 "$HAKMEM_SOURCE/hakmem" release --check
for line in "versions and changelog agree" "the ABI is packaging/abi.txt" "two folders, the same bits" "the crate is whole"; do
    says out "ok    $line"
done
[ -s "$work/package/SHA256SUMS" ] || fail "no checksums"
python3 -c 'import json, sys; json.load(open(sys.argv[1]))["bomFormat"]' "$work"/package/*.cdx.json || fail "no bill of materials"
expect 0 python3 -B - "$HAKMEM_SOURCE" "$work" <<'PYTHON'
import pathlib, sys
sys.path.insert(0, sys.argv[1] + "/tools")
from hakmem_package import release, stage
work = pathlib.Path(sys.argv[2])
release.ABI = work / "abi.txt"
library = stage.ROOT / "build" / "release" / "libhakmem.so"
release.ABI.write_text(release.abi_of(library) + "hak_gone\n")
assert release.abi(library, False) == ["gone from the ABI: hak_gone"], release.abi(library, False)
stage.version = lambda: "9.9.9"
assert len(release.versions()) >= 3, release.versions()
PYTHON
exit $failed
