# SPDX-License-Identifier: Apache-2.0
set -u
echo "before"
echo "$never_set"
echo "not reached"
