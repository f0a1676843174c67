#!/bin/sh
# SPDX-License-Identifier: MIT
# Unpacks Debian's PACKAGES of a foreign architecture into FOLDER, with apt lists of its own: the system's package
# state stays as it is. Usage: fetch_packages.sh ARCHITECTURE FOLDER PACKAGES…
set -eu
architecture=$1
folder=$2
shift 2
if [ -e "$folder/.complete" ]; then
    exit 0
fi
for tool in apt-get dpkg-deb; do
    command -v $tool >/dev/null || {
        echo "fetch_packages: $tool is not installed" >&2
        exit 1
    }
done
mkdir -p "$folder"
exec 8>"$folder/.lock"
flock 8 # a build in the background may fetch the same
[ ! -e "$folder/.complete" ] || exit 0
mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
cd "$folder"
apt() {
    apt-get -q -o "Dir::State::Lists=$PWD/lists" -o "Dir::Cache=$PWD/cache" -o APT::Sandbox::User=root \
        -o "APT::Architectures::=$(dpkg --print-architecture)" -o "APT::Architectures::=$architecture" \
        -o Acquire::Languages=none "$@" </dev/null
}
apt update
for package; do
    apt download "$package:$architecture"
done
for package in ./*.deb; do
    dpkg-deb -x "$package" .
done
rm -rf lists cache ./*.deb
: >.complete
