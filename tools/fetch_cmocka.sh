#!/bin/sh
# SPDX-License-Identifier: MIT
# Unpacks Debian's cmocka for a foreign architecture into FOLDER, with apt lists of its own: the system's
# package state stays as it is. Usage: fetch_cmocka.sh ARCHITECTURE FOLDER
set -eu
architecture=$1
folder=$2
if [ -e "$folder/usr/include/cmocka.h" ]; then
    exit 0
fi
for tool in apt-get dpkg-deb; do
    command -v $tool >/dev/null || {
        echo "fetch_cmocka: $tool is not installed" >&2
        exit 1
    }
done
mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
cd "$folder"
apt() {
    apt-get -q -o "Dir::State::Lists=$PWD/lists" -o "Dir::Cache=$PWD/cache" -o APT::Sandbox::User=root \
        -o "APT::Architectures::=$(dpkg --print-architecture)" -o "APT::Architectures::=$architecture" \
        -o Acquire::Languages=none "$@" </dev/null
}
apt update
apt download "libcmocka0:$architecture" "libcmocka-dev:$architecture"
for package in ./*.deb; do
    dpkg-deb -x "$package" .
done
rm -rf lists cache ./*.deb
