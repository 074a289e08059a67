/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See ending.h. One table of causes, one of signals. A limit's sentence names the flag and the value to retry
 * with, both from the knob table and the cause, as on the command line.
 */
#include "run/analyse/ending.h"

#include "spec/knob.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { SUGGESTION_MAX = 600 };

static const struct cause_row {
	const char *kind;
	const char *error_type, *category;
	bool is_limit;
	const char *advice; /* for a limit: an alternative to raising it */
} causes[] = {
	{ "timeout", "timeout", "timeout", true,
	  "look for a loop that does not end or a wait for input that never comes" },
	{ "idle", "timeout", "timeout", true,
	  "look for a wait for input, a lock or a sleep that never ends" },
	{ "cpu_time", "cpu_time", "timeout", true,
	  "look for a loop that does not end or a slower algorithm than needed" },
	{ "memory", "memory", "memory", true,
	  "read and keep less at a time, and look for a list that only grows" },
	{ "output", "output", "output", true, "print less, or write to a file" },
	{ "pids", "pids", "process", true, "start fewer processes and threads, and wait for them" },
	{ "disk", "disk", "disk", true, "write less, or remove files that are done with" },
	{ "policy", "sandbox_error", "policy", false, NULL },
	{ "setup", "sandbox_error", "setup", false, NULL },
	{ "cancelled", "cancelled", "cancelled", false,
	  "The execution was cancelled: run it again if that was not wanted." },
	{ "interrupted", "sandbox_error", "internal", false,
	  "Atoll ended while the program ran: run it again." },
	{ "internal", "sandbox_error", "internal", false,
	  "This is a failure of Atoll, not of the program: run it again, and look at `atoll "
	  "doctor` if it stays." },
};

static const struct signal_row {
	int number;
	const char *advice;
} signals[] = {
	{ SIGSEGV,
	  "It used memory that is not its own: look for null pointers and indexes beyond an "
	  "array." },
	{ SIGBUS,
	  "It used memory that is not there: look for wild pointers and files that were cut "
	  "while mapped." },
	{ SIGFPE, "An integer was divided by 0: test divisors first." },
	{ SIGILL, "It came upon an invalid instruction: look for undefined behaviour, such as a "
		  "function without `return`." },
	{ SIGABRT, "It called `abort()`: look for failed checks and damaged memory." },
	{ SIGKILL, "It was killed by SIGKILL, from inside: Atoll did not do it." },
	{ SIGTERM, "It was asked to end by SIGTERM, from inside." },
	{ SIGINT, "It was interrupted by SIGINT." },
	{ SIGPIPE, "It wrote into a pipe whose reader has closed it." },
	{ SIGSYS, "It made a system call that the sandbox forbids: leave it out." },
	{ SIGTRAP, "It hit a trap: look for a failed check of the compiler's or of the runtime." },
	{ SIGXCPU, "It used up its CPU time: raise `--cpu-time`." },
	{ SIGXFSZ, "It wrote a file beyond the limit: raise `--file-size`." },
};

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

bool ending_is_compiler(const char *stage)
{
	return strcmp(stage, ANALYSE_COMPILE) == 0 ||
	       strncmp(stage, ANALYSE_COMPILE ":", sizeof(ANALYSE_COMPILE ":") - 1) == 0;
}

/* A stack is used up only by touching all of it. Without a measured peak, it may have been. */
static int64_t find_used_stack(const json_t *request, const json_t *result)
{
	const struct knob *k = knob_find("stack");
	const json_t *asked = json_object_get(json_object_get(request, "limits"), "stack");
	const json_t *peak = json_object_get(result, "memory_peak");
	int64_t bytes = k->preset;

	if (asked && knob_parse_json(k, asked, &bytes, NULL) < 0)
		bytes = k->preset;
	return json_is_integer(peak) && json_integer_value(peak) < bytes ? 0 : bytes;
}

void ending_read(const json_t *request, const json_t *result, struct ending_view *ret)
{
	const json_t *stages = json_object_get(result, "stages");
	size_t n = json_array_size(stages);
	const json_t *last = n > 0 ? json_array_get(stages, n - 1) : NULL;
	bool merged = json_is_true(json_object_get(request, "merge_stderr"));
	const json_t *words = json_object_get(result, merged ? "stdout" : "stderr");

	*ret = (struct ending_view){
		.result = result,
		.cause = json_object_get(result, "cause"),
		.status = text_at(result, "status"),
		.exit_code = json_integer_value(json_object_get(result, "exit_code")),
		.signal = json_integer_value(json_object_get(result, "signal")),
	};
	ret->stack_bytes = find_used_stack(request, result);
	ret->kind = text_at(ret->cause, "kind");
	ret->detail = text_at(ret->cause, "detail");
	ret->success = strcmp(ret->status, "success") == 0;
	ret->last = last ? text_at(last, "name") : "";
	ret->compiling = !ret->success && ending_is_compiler(ret->last);
	/* tsc and others print errors on standard output. */
	if (ret->compiling && json_string_length(words) == 0)
		words = json_object_get(last, "stdout");
	ret->words = json_string_value(words);
	ret->words_len = json_string_length(words);
}

static int say_limit(const struct ending_view *v, const struct cause_row *row, struct buf *out)
{
	const struct knob *k = knob_find(text_at(v->cause, "limit_key"));
	const json_t *limit = json_object_get(v->cause, "limit");
	const json_t *suggest = json_object_get(v->cause, "suggest");
	int64_t now = 0, next = 0;
	char now_text[32], next_text[32];

	if (!k || knob_parse_json(k, limit, &now, NULL) < 0)
		return buf_printf(out, "The limit was reached: %s.", row->advice);
	knob_format(k, now, now_text, sizeof(now_text));
	if (v->compiling)
		return buf_printf(out,
				  "The compiler reached its limit of %s: make the program smaller.",
				  now_text);
	if (!k->flag || !json_is_number(suggest) || knob_parse_json(k, suggest, &next, NULL) < 0)
		return buf_printf(
			out,
			"The limit of %s was reached, and a higher one is not to be had or "
			"would not help: %s.",
			now_text, row->advice);
	knob_flag_text(k, next, next_text, sizeof(next_text));
	return buf_printf(out, "Retry with `%s %s` if %s is too little for it; otherwise %s.",
			  k->flag, next_text, now_text, row->advice);
}

void ending_signal_name(int64_t number, char *ret, size_t size)
{
	const char *name = number < 128 ? sigabbrev_np((int)number) : NULL;

	if (name)
		(void)snprintf(ret, size, "SIG%s", name);
	else
		(void)snprintf(ret, size, "SIG%d", (int)number);
}

int ending_judge(const struct ending_view *v, struct ending_advice *ret)
{
	char stack[32];

	*ret = (struct ending_advice){ .error_type = "execution_failure", .category = "exit" };
	buf_init(&ret->text, SUGGESTION_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		if (strcmp(causes[i].kind, v->kind) != 0)
			continue;
		ret->error_type = causes[i].error_type;
		ret->category = causes[i].category;
		ret->decides = true;
		if (causes[i].is_limit)
			return say_limit(v, &causes[i], &ret->text);
		return buf_puts(&ret->text, causes[i].advice ? causes[i].advice : v->detail);
	}
	if (v->compiling) {
		ret->error_type = "compile_error";
		ret->category = "compile";
	}
	if (v->signal > 0) {
		ret->category = "signal";
		ending_signal_name(v->signal, ret->name, sizeof(ret->name));
		if (v->signal == SIGSEGV && v->stack_bytes > 0) {
			knob_format(knob_find("stack"), v->stack_bytes, stack, sizeof(stack));
			return buf_printf(
				&ret->text,
				"It used memory that is not its own, perhaps beyond the end of its "
				"stack of %s: look for recursion without an end, or raise "
				"`--stack`; then for null pointers and indexes beyond an array.",
				stack);
		}
		for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
			if (signals[i].number == v->signal)
				return buf_puts(&ret->text, signals[i].advice);
		return buf_printf(&ret->text, "It was ended by %s, from inside.", ret->name);
	}
	return buf_printf(
		&ret->text,
		"It ended with code %lld and named no error: look at what it does before it "
		"exits.",
		(long long)v->exit_code);
}
