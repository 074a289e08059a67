#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the scenarios of NVIDIA NeMo Agent Toolkit's code execution server against a sandbox server and compares every answer.
#
#   test_code_execution_sandbox.sh [-u URL] [-t SECONDS] [-m] [-h]
#
#   -u URL      where to send requests (SANDBOX_URL, or http://127.0.0.1:6000/execute)
#   -t SECONDS  timeout of each program (SANDBOX_TIMEOUT, or 30)
#   -m          malformed requests only
#   -h          this text
#
# Exits with 0 when everything is as expected, 1 on a mismatch, 2 when it cannot run.
# Needs curl and jq; the server needs Python with numpy, pandas and plotly.
set -uo pipefail

url="${SANDBOX_URL:-http://127.0.0.1:6000/execute}"
seconds="${SANDBOX_TIMEOUT:-30}"
malformed_only=no
passed=0
failed=0

stop() {
	echo "test_code_execution_sandbox.sh: $*" >&2
	exit 2
}

usage() {
	sed -n '3,13s/^# \{0,1\}//p' "$0"
}

ok() {
	passed=$((passed + 1))
	echo "[OK]    $1"
}

mismatch() {
	failed=$((failed + 1))
	echo "[ERROR] $1: $2"
}

# post CONTENT_TYPE BODY: sets `code` and `body` to the answer's status and text.
post() {
	local answer
	answer="$(curl -sS --max-time "$((${seconds%.*} + 30))" -X POST -H "Content-Type: $1" \
		--data-binary "$2" -w '\n%{http_code}' "$url" 2>&1)"
	code="${answer##*$'\n'}"
	body="${answer%$'\n'*}"
}

field() {
	jq -j ".$1 // empty" <<<"$body" 2>/dev/null
}

# test_code_execution NAME CODE STATUS [STDOUT [STDERR]]: both texts must occur in their stream.
test_code_execution() {
	local name="$1" program="$2" status="$3" out="${4:-}" err="${5:-}"
	post application/json "$(jq -n --arg code "$program" --argjson timeout "$seconds" \
		'{generated_code: $code, timeout: $timeout, language: "python"}')"
	if [ "$code" != 200 ]; then
		mismatch "$name" "HTTP $code: $body"
	elif [ "$(jq -r 'keys | join(" ")' <<<"$body" 2>/dev/null)" != "process_status stderr stdout" ]; then
		mismatch "$name" "not the three fields: $body"
	elif [ "$(field process_status)" != "$status" ]; then
		mismatch "$name" "expected $status: $body"
	elif [[ "$(field stdout)" != *"$out"* ]]; then
		mismatch "$name" "stdout without '$out': $body"
	elif [[ "$(field stderr)" != *"$err"* ]]; then
		mismatch "$name" "stderr without '$err': $body"
	else
		ok "$name"
	fi
}

# test_refusal NAME CONTENT_TYPE BODY STATUS STDERR
test_refusal() {
	local expected
	expected="$(jq -cn --arg text "$5" '{process_status: "error", stdout: "", stderr: $text}')"
	post "$2" "$3"
	if [ "$code" = "$4" ] && [ "$(jq -c '{process_status, stdout, stderr}' <<<"$body" 2>/dev/null)" = "$expected" ]; then
		ok "$1"
	else
		mismatch "$1" "expected HTTP $4 $expected: HTTP $code $body"
	fi
}

run_scenarios() {
	test_code_execution "1. Simple print" \
		'print("Hello, World!")' completed "Hello, World!"
	test_code_execution "2. Basic arithmetic" \
		$'a, b = 17, 5\nprint(f"{a} + {b} = {a + b}")\nprint(f"{a} * {b} = {a * b}")' \
		completed "17 * 5 = 85"
	test_code_execution "3. Numpy" \
		$'import numpy as np\nvalues = np.arange(1, 6)\nprint("mean", np.mean(values), "sum", values.sum())' \
		completed "mean 3.0 sum 15"
	test_code_execution "4. Pandas" \
		$'import pandas as pd\nframe = pd.DataFrame({"name": ["a", "b", "c"], "n": [1, 2, 3]})\nprint(frame.describe())\nprint("total", frame["n"].sum())' \
		completed "total 6"
	test_code_execution "5. Plotly" \
		$'import plotly.graph_objects as go\nfigure = go.Figure(go.Scatter(x=[1, 2, 3], y=[4, 1, 9]))\nfigure.update_layout(title="points")\nprint("traces", len(figure.data))' \
		completed "traces 1"
	test_code_execution "6. Syntax error" \
		'print("no end' error "" "SyntaxError"
	test_code_execution "7. Runtime error" \
		$'print("before")\nprint(1 / 0)' error "before" "ZeroDivisionError: division by zero"
	test_code_execution "8. Import error" \
		'import nonexistent_module' error "" "No module named 'nonexistent_module'"
	test_code_execution "9. Mixed stdout and stderr" \
		$'import sys\nprint("to stdout")\nprint("to stderr", file=sys.stderr)' \
		completed "to stdout" "to stderr"
	test_code_execution "10. Long running" \
		$'import time\nfor i in range(3):\n    time.sleep(0.5)\n    print("step", i)' \
		completed "step 2"
	test_code_execution "11. Dictionary format" \
		"{'generated_code': 'print(\"Hello from dict format\")'}" completed "Hello from dict format"
	test_code_execution "12. Markdown format" \
		$'```python\nprint("Hello from markdown")\n```' completed "Hello from markdown"
	test_code_execution "13. File operations" \
		$'import os\nwith open("scenario_13.txt", "w") as f:\n    f.write("kept")\nwith open("scenario_13.txt") as f:\n    print(f.read(), os.getcwd())\nos.remove("scenario_13.txt")\nprint("exists", os.path.exists("scenario_13.txt"))' \
		completed "exists False"
	test_code_execution "14. Files are kept: writing" \
		$'import numpy as np\nimport pandas as pd\nopen("persistence_test.txt", "w").write("line one")\npd.DataFrame({"a": [1, 2], "b": [3, 4]}).to_csv("persistence_test.csv", index=False)\nnp.save("persistence_test.npy", np.arange(4))\nprint("written")' \
		completed "written"
	test_code_execution "15. Files are kept: reading in another request" \
		$'import os\nimport numpy as np\nimport pandas as pd\nprint(open("persistence_test.txt").read(), pd.read_csv("persistence_test.csv")["b"].sum(), np.load("persistence_test.npy").sum())\nfor kind in ("txt", "csv", "npy"):\n    os.remove("persistence_test." + kind)' \
		completed "line one 7 6"
	test_code_execution "16. JSON files" \
		$'import json, os\nwith open("scenario_16.json", "w") as f:\n    json.dump({"items": [1, 2, 3]}, f)\nwith open("scenario_16.json") as f:\n    print("sum", sum(json.load(f)["items"]))\nos.remove("scenario_16.json")' \
		completed "sum 6"
}

run_malformed() {
	test_refusal "missing generated_code" application/json \
		'{"timeout": 10, "language": "python"}' 400 "Missing required field: generated_code"
	test_refusal "missing timeout" application/json \
		'{"generated_code": "print(1)", "language": "python"}' 400 "Missing required field: timeout"
	test_refusal "invalid JSON" application/json \
		'{"generated_code": "print("test")", "timeout": 10}' 400 "Invalid JSON data"
	test_refusal "not JSON at all" text/plain \
		'This is not JSON' 400 "Request must be JSON"
}

while getopts "u:t:mh" option; do
	case "$option" in
	u) url="$OPTARG" ;;
	t) seconds="$OPTARG" ;;
	m) malformed_only=yes ;;
	h)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
done
shift $((OPTIND - 1))
[ $# -eq 0 ] || stop "'$1' is not an option; see -h"
[[ "$seconds" =~ ^[0-9]+([.][0-9]+)?$ ]] || stop "-t $seconds is not a number of seconds"
command -v curl >/dev/null || stop "curl is missing; apt install curl"
command -v jq >/dev/null || stop "jq is missing; apt install jq"
# Any answer will do: GET is not allowed there, and that says somebody is at home.
curl -s -o /dev/null --max-time 10 "$url" || stop "no server answers at $url; start one with start_local_sandbox.sh"

[ "$malformed_only" = yes ] || run_scenarios
run_malformed
echo "$passed as expected, $failed not"
[ "$failed" -eq 0 ]
