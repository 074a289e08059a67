echo "$GREETING"
