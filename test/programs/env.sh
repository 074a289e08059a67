# SPDX-License-Identifier: Apache-2.0
env | cut -d= -f1 | grep -E '^(PATH|HOME|USER)$' | sort
export MINE=1; bash -c 'echo $MINE'; unset MINE; bash -c 'echo ${MINE:-gone}'
echo "$#:$*"; shift; echo "$1"; set -- x y; echo "$@"
cat - | tail -1
cd /tmp && pwd && cd - > /dev/null
[ -t 0 ] || echo "no terminal"; [ -p /dev/stdout ] || [ -f /dev/stdout ] || echo "other"; echo $(($$ > 0))
exec true
