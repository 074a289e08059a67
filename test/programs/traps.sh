# SPDX-License-Identifier: Apache-2.0
trap 'echo leaving with $?' EXIT
trap 'echo usr1' USR1
kill -USR1 $$
sleep 30 & pid=$!
while [ "$(cat /proc/$pid/comm)" != sleep ]; do :; done # a child that has not begun has its parent's traps
kill $pid
wait $pid; echo "child ended with $?"
(exit 9) || echo "sub: $?"
jobs | wc -l
ulimit -c 0
f() { local x=inner; echo $x; return 4; }
f; echo "f: $?"
exec 3> out.txt; echo to three >&3; exec 3>&-; cat out.txt
false | true; echo "${PIPESTATUS[@]}"
exit 11
