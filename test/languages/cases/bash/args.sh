printf '%s\n' "$@"
