# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
seq 1 100 | awk '{s += $1} END {print s}'
printf '%s\n' pear apple fig | sort | nl
echo "a,b,c" | cut -d, -f2 | tr a-z A-Z
diff <(printf '1\n2\n') <(printf '1\n3\n') || echo "differ: $?"
mkfifo pipe
(echo through the fifo > pipe) &
cat pipe
wait
find . -name 'p*' | sort
tar cf - pipe 2>/dev/null | wc -c | grep -q . && echo tarred
grep -c o <<< $'one\ntwo\nthree' | xargs -I{} echo "{} lines"
