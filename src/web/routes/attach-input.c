/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See attach.c: the client's bytes and messages for the program. They wait here until the program takes them.
 */
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "spec/yaml.h"
#include "web/routes/attach.h"

enum { SIGNAL_RETRY_MS = 5 };

static void drop_input(struct attach *a)
{
	a->taken = a->input.len;
	attach_complain(
		a, "stdin: the program's standard input is closed; attach within a second of the "
		   "start to a job sent without stdin, or send it with ?interactive=true.");
}

bool attach_feed(struct attach *a)
{
	struct execution *x = watcher_execution(a->watcher);
	ssize_t n = 0;

	if (!x || execution_has_ended(x)) {
		a->taken = a->input.len;
	} else if (execution_is_running(x)) {
		if (a->taken < a->input.len)
			n = execution_stdin_write(x, a->input.data + a->taken,
						  a->input.len - a->taken);
		if (n > 0)
			a->taken += (size_t)n;
		else if (n == -EPIPE)
			drop_input(a);
		if (a->input_ends && a->taken == a->input.len) {
			a->input_ends = false;
			execution_stdin_close(x);
		}
	}
	if (a->taken == a->input.len) {
		buf_done(&a->input);
		buf_init(&a->input, INPUT_BYTES_MAX);
		charge_add(&a->held, -a->held.amount);
		a->taken = 0;
	}
	return a->input.len > 0;
}

void attach_take_bytes(struct attach *a, const void *bytes, size_t n)
{
	struct error err = { 0 };

	if (a->input_ends) {
		attach_complain(a, "stdin: its end was sent before this.");
		return;
	}
	if (http_check_bytes(&a->held, SLOT_BODY_BYTES, a->input.len, n, &err) < 0)
		event_socket_close(&a->socket, SOCKET_TRY_AGAIN_LATER, err.text);
	else if (buf_append(&a->input, bytes, n) < 0)
		event_socket_close(&a->socket, WSLAY_CODE_MESSAGE_TOO_BIG,
				   "too much input waits for the program");
	else
		charge_add(&a->held, (int64_t)n);
}

static int signal_number(const json_t *value)
{
	const char *name = json_string_value(value);
	json_int_t number = json_integer_value(value);

	if (json_is_integer(value))
		return number > 0 && number < NSIG ? (int)number : -EINVAL;
	if (name && strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; name && i < NSIG; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return -EINVAL;
}

static void take_stdin(struct attach *a, const json_t *message)
{
	const json_t *data = json_object_get(message, "data");

	if (json_is_string(data))
		attach_take_bytes(a, json_string_value(data), json_string_length(data));
	else
		attach_complain(a, "stdin: data must be a text; send bytes as a binary frame.");
}

static void take_eof(struct attach *a, const json_t *message _unused_)
{
	a->input_ends = true;
}

/* Signals wait for "running": the first output may arrive before that event. */
static void send_signals(struct attach *a)
{
	struct execution *x = watcher_execution(a->watcher);
	size_t sent = 0;

	while (sent < a->n_signals) {
		if (!x || execution_has_ended(x))
			sent = a->n_signals;
		else if (execution_signal(x, a->signals[sent]) == -ESRCH)
			break;
		else
			sent++;
	}
	a->n_signals -= sent;
	memmove(a->signals, a->signals + sent, a->n_signals * sizeof(a->signals[0]));
	source_set_time(a->retry, a->n_signals == 0 ? INT64_MAX
						    : clock_now_ns() + SIGNAL_RETRY_MS * NS_PER_MS);
}

int attach_on_retry(void *data, uint32_t events)
{
	(void)events;
	send_signals(data);
	return 0;
}

static void take_signal(struct attach *a, const json_t *message)
{
	int number = signal_number(json_object_get(message, "signal"));

	if (number < 1 || number >= NSIG) {
		attach_complain(a, "signal: give a name like INT, or a number.");
	} else if (a->n_signals < SIGNALS_MAX) {
		a->signals[a->n_signals++] = number;
		send_signals(a);
	}
}

static void take_resize(struct attach *a, const json_t *message)
{
	json_int_t rows = json_integer_value(json_object_get(message, "rows"));
	const json_t *given = json_object_get(message, "columns");
	/* Terminals in browsers send "cols". */
	json_int_t columns = json_integer_value(given ? given : json_object_get(message, "cols"));
	struct execution *x = watcher_execution(a->watcher);

	if (rows < 1 || rows > UINT16_MAX || columns < 1 || columns > UINT16_MAX)
		attach_complain(a, "resize: rows and columns must be numbers from 1 to 65535.");
	else if (x)
		execution_resize(x, (uint16_t)rows, (uint16_t)columns);
}

static const struct {
	const char *type;
	void (*take)(struct attach *a, const json_t *message);
} messages[] = {
	{ "stdin", take_stdin },
	{ "eof", take_eof },
	{ "signal", take_signal },
	{ "resize", take_resize },
};

void attach_take_text(struct attach *a, const char *text, size_t n)
{
	struct document doc = { "message", text, n };
	struct error err = { 0 };
	json_t *message = NULL;
	const char *type;
	size_t i;

	if (json_parse(&doc, &message, &err) < 0) {
		attach_complain(a, err.text);
		return;
	}
	type = json_string_value(json_object_get(message, "type"));
	for (i = 0; i < ARRAY_SIZE(messages); i++)
		if (type && strcmp(messages[i].type, type) == 0)
			break;
	if (i < ARRAY_SIZE(messages))
		messages[i].take(a, message);
	else
		attach_complain(a, "type must be stdin, eof, signal or resize.");
	json_decref(message);
}
