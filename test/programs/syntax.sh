# SPDX-License-Identifier: Apache-2.0
echo "runs until here"
if true; then
  echo "never closed"
