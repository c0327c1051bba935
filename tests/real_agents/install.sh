#!/usr/bin/env bash
# Installs the real agent programs that the tests run, and the Node they run under, into a cache folder:
#   tests/real_agents/install.sh [DIR]
# DIR is ${KANDEV_REAL_AGENTS:-.real-agents in the repository} unless given. The versions are those of npm/.
# Returns at once when they are there. Exits 3 when this machine cannot have them, 1 when npm fails.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
folder=${1:-${KANDEV_REAL_AGENTS:-$repository/.real-agents}}
stamp=$folder/installed.sha256
wanted=$(cat "$here/npm/package.json" "$here/npm/package-lock.json" | sha256sum | cut -d ' ' -f 1)

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    echo "The real agents are in $folder."
    exit 0
fi
if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then
    echo "The real agents are locked for Linux on x86_64 only: their tests will be skipped here." >&2
    exit 3
fi
if ! command -v npm >/dev/null; then
    echo "npm is missing, so the real agents cannot be installed: install npm (Debian: apt-get install npm)" \
        "or go without, then their tests are skipped." >&2
    exit 3
fi

mkdir -p "$folder"
rm -f "$stamp"
cp "$here/npm/package.json" "$here/npm/package-lock.json" "$here/npm/.npmrc" "$folder/"
if ! npm --prefix "$folder" ci --ignore-scripts --no-progress --loglevel error; then
    echo "npm could not install the real agents into $folder: its own words are above." >&2
    exit 1
fi
echo "$wanted" >"$stamp"
echo "The real agents are in $folder."
