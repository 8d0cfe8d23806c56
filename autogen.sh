#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes ./configure in a fresh clone.
set -e
cd "$(dirname "$0")"
mkdir -p build-aux
exec autoreconf --install --warnings=all,no-obsolete
