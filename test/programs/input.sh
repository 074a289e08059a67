# SPDX-License-Identifier: Apache-2.0
echo "args: $# $1 ${2:-none}"
while IFS=: read -r name value; do total=$((total + value)); echo "$name -> $value"; done
echo "total $total"
read -r nothing || echo "end of input"
