#!/bin/bash
# A fork bomb, and what becomes of it: atoll run examples/bomb.sh --json --timeout 5
exec 2>/dev/null
bomb() { bomb | bomb & }
bomb
wait
