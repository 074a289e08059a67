/* SPDX-License-Identifier: Apache-2.0 */
/* See http-write.h. */
#include "web/codec/http-write.h"

#include "base/uri.h"
#include "base/utf8.h"

#include <stdio.h>

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 100, "Continue" },
	{ 101, "Switching Protocols" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 422, "Unprocessable Content" },
	{ 426, "Upgrade Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};

const char *http_reason(int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

int http_write_status(struct buf *b, int status)
{
	if (status < 100 || status > 599)
		return -EINVAL;
	return buf_printf(b, "HTTP/1.1 %d %s\r\n", status, http_reason(status));
}

/* Visible characters only: a blank would end the target. */
static bool is_visible(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c <= 0x20 || *c >= 0x7f)
			return false;
	return true;
}

int http_write_request_line(struct buf *b, enum http_method method, const char *target)
{
	if (method == HTTP_OTHER || target[0] != '/' || !is_visible(target))
		return -EINVAL;
	return buf_printf(b, "%s %s HTTP/1.1\r\n", http_method_name(method), target);
}

static bool is_value(struct span value)
{
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.data[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

int http_write_field(struct buf *b, const char *name, struct span value)
{
	size_t before = b->len;
	int r;

	if (!http_is_token(span_of(name)) || !is_value(value))
		return -EINVAL;
	r = buf_printf(b, "%s: ", name);
	if (r >= 0)
		r = buf_append(b, value.data ? value.data : "", value.len);
	if (r >= 0)
		r = buf_puts(b, "\r\n");
	if (r < 0 && b->data) {
		b->len = before;
		b->data[before] = '\0';
	}
	return r;
}

int http_write_end(struct buf *b)
{
	return buf_puts(b, "\r\n");
}

/*
 * Reads one character of the name. plain gets an ASCII byte, full the bytes that can be shown. Returns its
 * length.
 */
static size_t name_char(const char *at, char *plain, struct span *full)
{
	uint32_t c;
	size_t n = utf8_decode(at, strnlen(at, 4), &c);

	*plain = '_';
	*full = span_of("_");
	if (n == 0)
		return 1;
	if (n == 1) {
		if (!utf8_is_hidden(c) && !strchr("\"\\/%", at[0]))
			*plain = at[0];
		else if (at[0] == '%')
			*full = (struct span){ at, 1 };
		if (*plain != '_')
			*full = (struct span){ at, 1 };
		return 1;
	}
	/* Marks of direction above all: "exe.fdp" must not read "pdf.exe". */
	if (!utf8_is_hidden(c))
		*full = (struct span){ at, n };
	return n;
}

int http_write_attachment(struct buf *b, const char *filename)
{
	_cleanup_buf_ struct buf value = { 0 }, full = { 0 };
	const char *slash = strrchr(filename, '/'), *name = slash ? slash + 1 : filename;
	bool lossy = false;
	int r;

	buf_init(&value, 8192);
	buf_init(&full, 8192);
	r = buf_puts(&value, "attachment; filename=\"");
	for (size_t n; r >= 0 && *name; name += n) {
		struct span shown;
		char plain;

		n = name_char(name, &plain, &shown);
		lossy = lossy || shown.len != 1 || shown.data[0] != plain;
		r = buf_append(&value, &plain, 1);
		if (r >= 0)
			r = uri_encode(&full, shown);
	}
	if (r >= 0)
		r = buf_puts(&value, "\"");
	if (r >= 0 && lossy)
		r = buf_printf(&value, "; filename*=UTF-8''%s", full.data);
	if (r < 0)
		return r;
	return http_write_field(b, "Content-Disposition", (struct span){ value.data, value.len });
}

size_t http_chunk_head(size_t n, char ret[HTTP_CHUNK_HEAD])
{
	return (size_t)snprintf(ret, HTTP_CHUNK_HEAD, "%zx\r\n", n);
}

/* The date of a day counted from 1970-01-01, by the calendar's cycle of 400 years beginning in March. */
static void civil_date(int64_t days, int *year, int *month, int *day)
{
	int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;

	*day = (int)(doy - (153 * mp + 2) / 5 + 1);
	*month = (int)(mp < 10 ? mp + 3 : mp - 9);
	*year = (int)(yoe + era * 400 + (*month <= 2));
}

void http_date(int64_t realtime_sec, char ret[HTTP_DATE])
{
	static const char names[7][4] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" };
	static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	int64_t sec = MAX(0, MIN(realtime_sec, 253402300799)), days = sec / 86400;
	int of_day = (int)(sec % 86400), year, month, day;

	civil_date(days, &year, &month, &day);
	(void)snprintf(ret, HTTP_DATE, "%s, %02d %s %04d %02d:%02d:%02d GMT", names[days % 7],
		       day % 100, months[month - 1], year % 10000, of_day / 3600 % 100,
		       of_day / 60 % 60, of_day % 60);
}
