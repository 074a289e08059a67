# SPDX-License-Identifier: Apache-2.0
cat <<END | while read -r a b; do echo "$b $a"; done
one two
three four
END
name=world
cat <<-'END'
	literal $name
END
f=$(mktemp) && echo temp > "$f" && wc -c < "$f" && rm "$f"
{ echo out; echo err >&2; } 2> err.txt | cat; cat err.txt
select_one() { local IFS=,; set -- $1; echo "$2"; }
select_one "a,b,c"
time_taken=$( { time true; } 2>&1 | grep -c real ); echo "$time_taken"
coproc CAT { cat; }
echo "to the coprocess" >&"${CAT[1]}"; read -r line <&"${CAT[0]}"; echo "$line"
exec {CAT[1]}>&-
printf '%q ' "a b" 'c$d'; echo; echo {a..e}{1,2} | wc -w; echo $((2 ** 40)) $((0x1f)) $((017))
