read -r line
echo "got: $line"
