printf -v block '%*s' $((64 << 20)) ''
echo "allocated ${#block}"
