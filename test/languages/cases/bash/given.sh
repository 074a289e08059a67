printf '%s\n' "$@"
read -r line
echo "got: $line"
echo "$GREETING"
cat data/input.txt
exit 7
