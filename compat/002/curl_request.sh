#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One request by hand: makes a figure with plotly in the sandbox and shows the answer.
#
#   curl_request.sh [URL]
#
# URL is http://127.0.0.1:6000/execute unless given (or SANDBOX_URL). Exits with 1 when the figure was not made.
set -euo pipefail

url="${1:-${SANDBOX_URL:-http://127.0.0.1:6000/execute}}"

answer="$(curl -sS -X POST -H "Content-Type: application/json" --data-binary @- "$url" <<'JSON'
{
  "generated_code": "import plotly.graph_objects as go\n\nfigure = go.Figure()\nfigure.add_trace(go.Scatter(x=[1, 2, 3, 4], y=[10, 11, 12, 13], mode='markers'))\nfigure.update_layout(title='Four points')\nprint('points:', len(figure.data[0].x))\nprint('JSON:', len(figure.to_json()) > 100)\n",
  "timeout": 30,
  "language": "python"
}
JSON
)"

if command -v jq >/dev/null; then
	jq . <<<"$answer"
else
	echo "$answer"
fi
[[ "$answer" == *'"process_status":"completed"'* ]]
