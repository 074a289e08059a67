# SPDX-License-Identifier: Apache-2.0
declare -A age=([ada]=36 [bo]=41)
list=(one "two words" three)
for name in $(printf '%s\n' "${!age[@]}" | sort); do echo "$name ${age[$name]}"; done
echo "${#list[@]} ${list[1]} ${list[@]:1} ${list[-1]^^}"
text="hello world"
echo "${text/o/0} ${text//o/0} ${text:6} ${text%% *} ${#text} ${undefined:-default}"
fib() { (( $1 < 2 )) && echo $1 || echo $(( $(fib $(($1 - 1))) + $(fib $(($1 - 2))) )); }
fib 10
case $text in hello*) echo greeting ;; *) echo other ;; esac
[[ $text =~ ^(h[a-z]+)\ (w.*)$ ]] && echo "${BASH_REMATCH[2]} ${BASH_REMATCH[1]}"
printf -v padded '%05.1f|%-6s|%x' 3.14159 left 255; echo "$padded"
for ((i = 0; i < 3; i++)); do [ $i -eq 1 ] && continue; echo "i=$i"; done
