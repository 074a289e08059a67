/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See log.h. A line is built field by field in a buffer of fixed size. A field that does not fit is removed,
 * and the line ends with cut=true. Both formats use JSON's escapes, so no value can end its own quotes. Writing
 * never blocks: if the reader of standard error does not keep up, records are lost, and the next line counts
 * them (lost=N).
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[_LOG_LEVEL_MAX] = { "debug", "info", "warning", "error" };

const char *log_level_name(enum log_level level)
{
	return level_names[level];
}

/* Always left free: one longest escape, the mark of a cut value, its quote and the end of the line. */
enum { TAIL_ROOM = 48, ESCAPE_MAX = 12 };

struct log_line {
	char *text;
	size_t len;
	bool json, cut;
};

static void put_log_bytes(struct log_line *l, const char *s, size_t n)
{
	if (n > LOG_LINE_MAX - l->len) {
		l->cut = true;
		return;
	}
	memcpy(l->text + l->len, s, n);
	l->len += n;
}

static void puts_line(struct log_line *l, const char *s)
{
	put_log_bytes(l, s, strlen(s));
}

/* Writes one character, escaped if it must be; returns how many bytes were read. */
static size_t escape(const unsigned char *s, size_t n, char ret[ESCAPE_MAX])
{
	static const char plain[] = "\n\t\r\"\\", letters[] = "ntr\"\\";
	uint32_t c = 0;
	size_t read = utf8_decode((const char *)s, n, &c);
	const char *known;

	if (read == 0) {
		(void)snprintf(ret, ESCAPE_MAX, "\xef\xbf\xbd");
		return 1;
	}
	known = c != 0 && c < 0x80 ? strchr(plain, (int)c) : NULL;
	if (!known && c > 0x1f && c < 0x7f) { /* the common case */
		ret[0] = (char)c;
		ret[1] = '\0';
	} else if (known)
		(void)snprintf(ret, ESCAPE_MAX, "\\%c", letters[known - plain]);
	else if (utf8_is_hidden(c))
		(void)snprintf(ret, ESCAPE_MAX, "\\u%04x", (unsigned)c);
	else
		(void)snprintf(ret, ESCAPE_MAX, "%.*s", (int)read, (const char *)s);
	return read;
}

static void put_quoted(struct log_line *l, const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t end = MIN(l->len + LOG_VALUE_MAX, (size_t)(LOG_LINE_MAX - TAIL_ROOM));
	char one[ESCAPE_MAX];

	puts_line(l, "\"");
	for (size_t i = 0; i < n;) {
		i += escape(s + i, n - i, one);
		if (l->len + strlen(one) > end) {
			puts_line(l, "…");
			break;
		}
		puts_line(l, one);
	}
	puts_line(l, "\"");
}

/* Whether logfmt writes the value without quotes. */
static bool is_plain_value(const char *text, size_t n)
{
	if (n == 0 || n > LOG_VALUE_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c <= 0x20 || c >= 0x7f || c == '"' || c == '=' || c == '\\')
			return false;
	}
	return true;
}

static void put_text(struct log_line *l, const char *text, size_t n)
{
	if (!l->json && is_plain_value(text, n) && l->len + n <= LOG_LINE_MAX - TAIL_ROOM)
		put_log_bytes(l, text, n);
	else
		put_quoted(l, text, n);
}

static void put_log_value(struct log_line *l, const struct log_field *f)
{
	char number[32];
	/* Negated as unsigned: the smallest int64_t has no positive counterpart. */
	uint64_t size = f->number < 0 ? 0 - (uint64_t)f->number : (uint64_t)f->number;

	switch (f->kind) {
	case LOG_KIND_TEXT:
		put_text(l, f->text, strlen(f->text));
		return;
	case LOG_KIND_BYTES:
		put_text(l, f->text, f->len);
		return;
	case LOG_KIND_BOOL:
		puts_line(l, f->number ? "true" : "false");
		return;
	case LOG_KIND_MS:
		(void)snprintf(number, sizeof(number), "%s%llu.%03u", f->number < 0 ? "-" : "",
			       (unsigned long long)(size / MS_PER_SEC),
			       (unsigned)(size % MS_PER_SEC));
		break;
	case LOG_KIND_US:
		(void)snprintf(number, sizeof(number), "%s%llu.%06u", f->number < 0 ? "-" : "",
			       (unsigned long long)(size / (US_PER_MS * MS_PER_SEC)),
			       (unsigned)(size % (US_PER_MS * MS_PER_SEC)));
		break;
	default:
		(void)snprintf(number, sizeof(number), "%lld", (long long)f->number);
		break;
	}
	puts_line(l, number);
}

/* false: there was no room; the field was removed. */
static bool put_field(struct log_line *l, const struct log_field *f)
{
	size_t before = l->len;

	if ((f->kind == LOG_KIND_TEXT || f->kind == LOG_KIND_BYTES) && !f->text)
		return true;
	if (l->len + strlen(f->key) + TAIL_ROOM < LOG_LINE_MAX - TAIL_ROOM) {
		puts_line(l, l->json ? ",\"" : " ");
		puts_line(l, f->key);
		puts_line(l, l->json ? "\":" : "=");
		put_log_value(l, f);
		if (l->len <= LOG_LINE_MAX - TAIL_ROOM + sizeof("…\""))
			return true;
	}
	l->len = before;
	l->cut = true;
	return false;
}

size_t log_format_record(const struct log *l, enum log_level level, const char *message,
			 const struct log_field *fields, char *ret)
{
	struct log_line line = { .text = ret, .json = l->format == LOG_JSON };
	char now[32];

	clock_format_utc(clock_realtime_ns(), now, sizeof(now));
	puts_line(&line, line.json ? "{\"time\":\"" : "time=");
	puts_line(&line, now);
	puts_line(&line, line.json ? "\"" : "");
	(void)put_field(&line, &LOG_TEXT("level", log_level_name(level)));
	(void)put_field(&line, &LOG_TEXT("who", l->who));
	(void)put_field(&line, &LOG_TEXT("msg", message));
	if (l->lost > 0)
		(void)put_field(&line, &LOG_I64("lost", (int64_t)l->lost));
	while (fields->kind != LOG_KIND_NONE && put_field(&line, fields))
		fields++;
	if (line.cut)
		puts_line(&line, line.json ? ",\"cut\":true" : " cut=true");
	puts_line(&line, line.json ? "}\n" : "\n");
	ret[line.len] = '\0';
	return line.len;
}

void log_record(struct log *l, enum log_level level, const char *message,
		const struct log_field *fields)
{
	struct pollfd p = { .fd = l->fd, .events = POLLOUT };
	char text[LOG_LINE_MAX + 1];
	size_t n;

	if (l->fd < 0 || level < l->level)
		return;
	n = log_format_record(l, level, message, fields, text);
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) && write(l->fd, text, n) == (ssize_t)n)
		l->lost = 0;
	else
		l->lost++;
}
