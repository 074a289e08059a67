# SPDX-License-Identifier: Apache-2.0
# Runs the executions of one Bash session (runners/README.md describes the lines of the channel).
#
# Descriptor 0 is the channel. It moves to a high descriptor first; while an execution runs, Bash keeps it as a close-on-exec copy, so no command
# inherits it. An execution is sourced at the top level of this shell from a descriptor, so variables, functions, options and the directory persist, and
# `return` ends it. Bash's messages name what is sourced, so it is sourced through a link with the name of a script.
#
# `exit`, `set -e`, `set -u`, ${x:?} and SIGINT leave the shell wherever it is: Bash has no other way out of nested functions. The EXIT trap
# then writes the state of the shell (variables, functions, aliases, options, traps, arguments) to a file and executes Bash anew in the same process, which
# reads the state back and tells the end of the execution. Directory, descriptors, limits and children are those of the process and stay; Bash's table of jobs
# and its coprocesses are lost, and local variables of the functions that were running become global. `trap` is a function here: the program's own EXIT trap runs when an execution leaves the shell, or when the session ends.
#
# SIGINT is ignored between executions. A command in the foreground gets the signal as well, and Bash handles it when that command has ended.
#
# The other side sends one line at a time and waits for its answer. So lines of more than 4 KiB are read by head, which may read ahead. It takes
# lines of this process only, so builtins write them.

__atoll_read() { # the next line, into __atoll_line
	local IFS= LC_ALL=C
	builtin read -r -u "$__atoll_fd" -n 4096 __atoll_line || builtin return
	if ((${#__atoll_line} == 4096)); then
		__atoll_line+=$(command -p head -n 1 <&"$__atoll_fd")
	fi
}

__atoll_unescape() { # the text of a JSON string, into __atoll_text; sed is for what Bash takes quadratic time for
	local LC_ALL=C text=$1
	if ((${#text} > 32768)); then
		text=$(command -p sed 's/\\"/"/g' <<<"$text")
	else
		text=${text//\\\"/\"}
	fi
	builtin printf -v __atoll_text %b "$text"
}

__atoll_escape() { # a text as JSON string, into __atoll_text
	local LC_ALL=C text=${1//\\/\\\\} c
	text=${text//\"/\\\"}
	if [[ $text == *[$'\1'-$'\37']* ]]; then
		for c in {1..31}; do
			builtin printf -v c '\\x%02x' "$c"
			builtin printf -v c %b "$c"
			[[ $text != *"$c"* ]] || builtin printf -v text %s "${text//"$c"/$(builtin printf '\\u%04x' "'$c")}"
		done
	fi
	__atoll_text=$text
}

__atoll_say() {
	builtin printf "$@" >&"$__atoll_fd"
}

# ---------------------------------------------------------------------------------------------- files

declare -A __atoll_errors=([ENOENT]='No such file or directory' [EISDIR]='Is a directory' [EINVAL]='Invalid argument' [EFBIG]='File too large' [EACCES]='Permission denied'
	[ENOTDIR]='Not a directory' [ENOSPC]='No space left on device' [EROFS]='Read-only file system' [EDQUOT]='Disk quota exceeded')

__atoll_fail() { # number, name of the error
	__atoll_say '{"op":"file","n":%s,"error":"%s","message":"%s"}\n' "$1" "$2" "${__atoll_errors[$2]-Input/output error}"
}

__atoll_fail_with() { # number, message of a command
	local name
	for name in "${!__atoll_errors[@]}"; do
		[[ $2 != *"${__atoll_errors[$name]}"* ]] || { __atoll_fail "$1" "$name"; builtin return; }
	done
	[[ $2 != *'File exists'* ]] || { __atoll_fail "$1" ENOTDIR; builtin return; }
	__atoll_fail "$1" EIO
}

__atoll_list() { # number, path, path relative to the work directory
	[[ -e $2 || -L $2 ]] || { __atoll_fail "$1" ENOENT; builtin return; }
	local kind size time name separator= prefix=
	[[ $3 == . ]] || prefix=$3
	__atoll_say '{"op":"file","n":%s,"error":null,"entries":[' "$1"
	while IFS=' ' builtin read -r -d '' kind size time name; do
		name=${prefix:+$prefix${name:+/}}$name
		[[ $name ]] || continue
		__atoll_escape "$name"
		__atoll_say '%s{"path":"%s","size":%s,"type":"%s","mtime":%s}' "$separator" "$__atoll_text" "$size" "$kind" "$time"
		separator=,
	done < <(if [[ -d $2 && ! -L $2 ]]; then set -- "$2" -mindepth 1; else set -- "$2"; fi
		command -p find "$@" \( -type f -printf 'file %s %T@ %P\0' \) -o \( -type d -printf 'directory %s %T@ %P\0' \) -o \
			\( -type l -printf 'link %s %T@ %P\0' \) 2>/dev/null | LC_ALL=C command -p sort -z -k 4 | command -p head -z -n 10000 | command -p iconv -c -f utf-8 -t utf-8)
	__atoll_say ']}\n'
}

__atoll_file() { # operation, number, path, base64, offset, size
	local path=$__atoll_work/$3 message
	case $1 in
	list)
		if [[ $3 == . ]]; then path=$__atoll_work; fi
		__atoll_list "$2" "$path" "$3" ;;
	read)
		if [[ ! -e $path ]]; then __atoll_fail "$2" ENOENT
		elif [[ -d $path ]]; then __atoll_fail "$2" EISDIR
		elif [[ ! -f $path ]]; then __atoll_fail "$2" EINVAL
		elif [[ ! -r $path ]]; then __atoll_fail "$2" EACCES
		else
			message=$(command -p dd if="$path" bs=1M iflag=skip_bytes,count_bytes skip="$5" count="$6" status=none | command -p base64 -w 0)
			__atoll_say '{"op":"file","n":%s,"error":null,"base64":"%s","size":%s}\n' "$2" "$message" "$(command -p stat -L -c %s -- "$path")"
		fi ;;
	write)
		if message=$({ command -p mkdir -p -- "${path%/*}" && command -p base64 -d <<<"$4" | LC_ALL=C command -p dd of="$path" bs=1M iflag=fullblock oflag=seek_bytes seek="$5" status=none; } 2>&1); then
			__atoll_say '{"op":"file","n":%s,"error":null}\n' "$2"
		else
			__atoll_fail_with "$2" "$message"
		fi ;;
	remove)
		if [[ ! -e $path && ! -L $path ]]; then __atoll_fail "$2" ENOENT
		elif message=$(LC_ALL=C command -p rm -r -- "$path" 2>&1); then __atoll_say '{"op":"file","n":%s,"error":null}\n' "$2"
		else __atoll_fail_with "$2" "$message"
		fi ;;
	esac
}

# ---------------------------------------------------------------------------------------- executions

__atoll_next() { # answers lines until there is code to run; fails when the channel ends
	local - IFS=$' \t\n' op number rest path offset size
	builtin set +efuvx +o noclobber
	[[ ! $__atoll_n ]] || __atoll_done 0 # `continue` or `break` of the program has brought us here
	while __atoll_read; do
		[[ $__atoll_line =~ ^\{\"op\":\"([a-z]+)\",\"n\":([0-9]+), ]] || continue
		op=${BASH_REMATCH[1]} number=${BASH_REMATCH[2]}
		if [[ $op == run ]]; then
			rest=${__atoll_line#*\"code\":\"}
			__atoll_unescape "${rest%\"\}}"
			__atoll_n=$number __atoll_code=$__atoll_text __atoll_input=
			if [[ $__atoll_line == *',"stdin":"'* ]]; then
				rest=${__atoll_line#*,\"stdin\":\"}
				__atoll_unescape "${rest%%\",\"code\":\"*}"
				__atoll_input='<<<"$__atoll_given"' __atoll_given=${__atoll_text%$'\n'}
			fi
			__atoll_line= __atoll_cell=/tmp/.cell.sh
			[[ -L $__atoll_cell ]] || __atoll_cell=/dev/fd/19 # no file can be written, or the program has removed the link
			builtin trap __atoll_interrupt INT
			builtin return 0
		fi
		[[ $__atoll_line =~ ^\{\"op\":\"[a-z]+\",\"n\":[0-9]+(,\"offset\":([0-9]+))?(,\"size\":([0-9]+))?, ]]
		offset=${BASH_REMATCH[2]:-0} size=${BASH_REMATCH[4]:-0}
		rest=${__atoll_line#*\"path\":\"} # NAME"} or NAME","base64":"DATA"}
		path=${rest%%\",\"base64\":\"*}
		if [[ $op == write ]]; then
			rest=${rest:${#path}+12:-2}
		else
			path=${path%\"\}}
		fi
		__atoll_unescape "$path"
		__atoll_file "$op" "$number" "$__atoll_text" "$rest" "$offset" "$size"
	done
	builtin return 1
}

__atoll_done() { # exit code
	local -
	builtin set +efuvx
	builtin trap '' INT
	local error=null interrupted=false
	if [[ $__atoll_interrupted ]]; then
		error='{"type":"KeyboardInterrupt","message":"","file":null,"line":null,"traceback":""}' interrupted=true
	fi
	__atoll_say '{"op":"done","n":%s,"error":%s,"exit_code":%s,"interrupted":%s}\n' "$__atoll_n" "$error" "$1" "$interrupted"
	__atoll_n= __atoll_code= __atoll_interrupted= __atoll_last=$1
}

__atoll_interrupt() {
	__atoll_interrupted=1
	builtin exit 130
}

trap() {
	if [[ $BASHPID != "$__atoll_pid" || $# -lt 2 || $1 == -[lp] ]]; then
		builtin trap "$@"
		builtin return
	fi
	[[ $1 != -- ]] || shift
	local action=$1 signal
	for signal in "${@:2}"; do
		case ${signal^^} in
		EXIT | SIGEXIT | 0) if [[ $action == - ]]; then __atoll_exit_trap=; else __atoll_exit_trap=$action; fi ;;
		*) builtin trap -- "$action" "$signal" || builtin return ;;
		esac
	done
}

__atoll_state() { # the state of this shell as commands; those that set what cannot be set fail alone
	builtin shopt -p
	builtin alias -p
	builtin declare -p
	builtin declare -f
	builtin declare -Fx
	builtin trap -p | command -p sed -E 's/^trap/builtin trap/; /(EXIT|SIGINT)$/d'
	builtin printf 'set --'
	(($# == 0)) || builtin printf ' %q' "$@"
	builtin printf '\nset +o %s' braceexpand hashall interactive-comments
	builtin printf '\nset -o %s\n' "${__atoll_options//:/$'\nset -o '}"
}

# The EXIT trap; arguments: exit code, arguments of the shell. It has no local variables, because they would hide the program's.
__atoll_leave() {
	builtin trap '' INT
	__atoll_options=$SHELLOPTS __atoll_code=$1
	builtin set +efuvx +o noclobber +o posix
	builtin shift
	if [[ ${FUNCNAME[1]-} != source ]]; then # a function was left: these are its arguments
		builtin set -- "${__atoll_arguments[@]}"
	fi
	if [[ $__atoll_exit_trap ]]; then
		__atoll_text=$__atoll_exit_trap __atoll_exit_trap=
		builtin eval "$__atoll_text"
	fi
	[[ $__atoll_n ]] || builtin return 0 # the session ends
	for __atoll_text in /proc/"$$"/fd/*; do # Bash has only a copy of the channel here, and a copy of that above 2 would be close-on-exec
		[[ $(command -p readlink "$__atoll_text") != "$__atoll_socket" ]] || builtin eval "exec <&${__atoll_text##*/}"
	done
	# Without room for the state the shell ends, and the front says that the state is lost.
	__atoll_text=$(command -p mktemp /tmp/.session-state-XXXXXX) && __atoll_state "$@" >"$__atoll_text" 2>/dev/null || builtin return
	builtin trap - INT
	builtin exec "$BASH" -c "$__atoll_runner" "$0" "$__atoll_text" "$__atoll_n" "$__atoll_code" "$__atoll_interrupted"
}

# ------------------------------------------------------------------------------------------------- start

builtin trap '' INT
if (($# == 4)); then # this shell takes over from one that was left
	__atoll_left=("$@")
	builtin set --
	builtin source "${__atoll_left[0]}" >/dev/null 2>&1 || :
	command -p rm -f -- "${__atoll_left[0]}"
	builtin unset BASH_EXECUTION_STRING
	__atoll_n=${__atoll_left[1]} __atoll_interrupted=${__atoll_left[3]}
else
	IFS= builtin read -r -d '' __atoll_runner <"$0" || :
	command -p rm -f -- "$0"
	command -p ln -s /dev/fd/19 /tmp/.cell.sh 2>/dev/null || :
	__atoll_work=$PWD __atoll_pid=$$ __atoll_fd=20
	__atoll_n= __atoll_code= __atoll_interrupted= __atoll_exit_trap= __atoll_last=0
	if { builtin : 200<&0; } 2>/dev/null; then
		__atoll_fd=200
	fi
fi
builtin eval "exec $__atoll_fd<&0 0</dev/null"
builtin trap '__atoll_leave "$?" "$@"' EXIT
if [[ $__atoll_n ]]; then
	__atoll_done "${__atoll_left[2]}"
	builtin unset __atoll_left
else
	__atoll_say '{"op":"ready"}\n'
	__atoll_socket=$(command -p readlink "/proc/$$/fd/$__atoll_fd")
fi
while :; do
	while __atoll_next; do
		__atoll_arguments=("$@")
		builtin eval 'builtin source "$__atoll_cell" 19<<<"$__atoll_code" '"$__atoll_input $__atoll_fd<&-"
		__atoll_done "$?"
	done
	[[ $__atoll_n ]] || break # else `break` of the program has ended the loop
done
builtin exit "$__atoll_last"
