#!/bin/sh
# SPDX-License-Identifier: MIT
# Tarball and wheel in a fresh root of Debian 12 without network: from nothing to a program on hakmem by one command, looked
# into, removed without a trace; what such a system lacks is told in one line.
set -eu
# shellcheck source=test/package/roots.sh
. "$HAKMEM_SOURCE/test/package/roots.sh"
needs_root_and debootstrap
expect 0 package tarball
expect 0 package wheel
debian_root bookworm
cp "$work"/package/*.tar.gz "$work"/package/*.whl "$root/packages/"

expect 0 inside sh -c 'cd /packages && tar xzf hakmem-*.tar.gz && hakmem-*/install.sh && hakmem run -- grep -c libhakmem /proc/self/maps'
looks_inside sleep 60
one_line 2 "there is no systemctl here" inside hakmem enable cron
mv "$root/usr/bin/python3" "$root/packages/python3"
for word in explain top options enable; do one_line 2 "$word needs python3" inside hakmem $word 1; done
expect 0 inside hakmem run --report explain -- grep -c /usr/local/lib/libhakmem /proc/self/maps
says err "RSS is"
mv "$root/packages/python3" "$root/usr/bin/python3"
mkdir "$root/packages/closed"
mount -t tmpfs -o ro none "$root/packages/closed"
# shellcheck disable=SC2016 # the inner shell expands it
one_line 1 "cannot write to /packages/closed/here" inside sh -c '"$(echo /packages/hakmem-*/install.sh)" --prefix /packages/closed/here'
one_line 2 "cannot write" inside hakmem enable cron --yes --root /packages/closed
one_line 0 "no file of this user can be written there" inside hakmem run --report explain /packages/closed/file -- true
umount "$root/packages/closed"
# shellcheck disable=SC2016 # the inner shell expands it
expect 0 inside sh -c '"$(echo /packages/hakmem-*/install.sh)" --uninstall'
nothing_left

expect 0 inside python3 -m venv /packages/venv
expect 0 inside sh -c 'cd /packages && venv/bin/pip --disable-pip-version-check install hakmem-*.whl &&
    venv/bin/python -m hakmem run -c "import hakmem; assert hakmem.is_active(); print(hakmem.explain())"'
says out "RSS is"
expect 0 inside /packages/venv/bin/pip uninstall -y hakmem
nothing_left
[ -z "$(find "$root/packages/venv" -name '*hakmem*')" ] || fail "pip leaves $(find "$root/packages/venv" -name '*hakmem*')"
exit $failed
