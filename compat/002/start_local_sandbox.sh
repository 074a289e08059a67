#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Starts a sandbox server for clients of the NVIDIA NeMo Agent Toolkit: POST http://127.0.0.1:6000/execute.
#
#   start_local_sandbox.sh [NAME] [OUTPUT_DIR]
#
# NAME (local-sandbox) tells servers apart: each has its own history and log. OUTPUT_DIR is the directory that
# programs see as /workspace; without it OUTPUT_DATA_PATH counts, then the current directory.
# Further variables: SANDBOX_HOST (127.0.0.1), SANDBOX_PORT (6000), DEBUG=1 (verbose log),
# ATOLL (the program), ATOLL_STATE_DIR (where servers keep their state).
set -euo pipefail

fail() {
	echo "start_local_sandbox.sh: $*" >&2
	exit 1
}

usage() {
	sed -n '3,11s/^# \{0,1\}//p' "$0"
}

# The program beside this script's repository, or the installed one.
find_atoll() {
	local built
	built="$(dirname "$(readlink -f "$0")")/../../build/atoll"
	if [ -n "${ATOLL:-}" ]; then
		echo "$ATOLL"
	elif [ -x "$built" ]; then
		readlink -f "$built"
	else
		command -v atoll || fail "atoll is not there; run ./dev build first, or put it on PATH"
	fi
}

state_base() {
	if [ -n "${ATOLL_STATE_DIR:-}" ]; then
		echo "$ATOLL_STATE_DIR"
	elif [ "$(id -u)" = 0 ]; then
		echo /var/lib/atoll
	else
		echo "${XDG_STATE_HOME:-$HOME/.local/state}/atoll"
	fi
}

case "${1:-}" in
-h | --help)
	usage
	exit 0
	;;
esac
[ $# -le 2 ] || fail "too many arguments; give a name and a directory"

name="${1:-local-sandbox}"
[[ "$name" =~ ^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$ ]] || fail "'$name' is not a name of letters, digits, _ . and -"

output="${2:-${OUTPUT_DATA_PATH:-$(pwd)}}"
mkdir -p -- "$output" || fail "'$output' cannot be created; give another OUTPUT_DIR"
output="$(cd -- "$output" && pwd -P)"
[ "$output" != / ] || fail "programs cannot have / as their /workspace; give an OUTPUT_DIR"
export OUTPUT_DATA_PATH="$output"

host="${SANDBOX_HOST:-127.0.0.1}"
port="${SANDBOX_PORT:-6000}"
case "$host" in
\[*) ;;
*:*) host="[$host]" ;;
esac

atoll="$(find_atoll)"
base="$(state_base)"
mkdir -p -- "$base"
state="$base/$name"

echo "sandbox '$name': http://$host:$port/execute, files in $output" >&2
exec "$atoll" serve --listen "$host:$port" --socket "$state/atoll.sock" --state-dir "$state"
