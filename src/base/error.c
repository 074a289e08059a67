/* SPDX-License-Identifier: Apache-2.0 */
/* See error.h. A text that does not fit is cut; an allocation here could itself fail. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _printf_(2, 0) void set_text(struct error *err, const char *fmt, va_list ap)
{
	if (vsnprintf(err->text, sizeof(err->text), fmt, ap) < 0)
		err->text[0] = '\0';
}

int error_set(struct error *err, enum error_code code, int errnum, const char *fmt, ...)
{
	int cause = errnum > 0 ? errnum : EINVAL;

	if (err) {
		va_list ap;

		err->code = (int32_t)code;
		err->errnum = cause;
		err->retry_after_s = 0;
		err->field[0] = '\0';
		va_start(ap, fmt);
		set_text(err, fmt, ap);
		va_end(ap);
	}
	return -cause;
}

static _printf_(4, 0) int set_field(struct error *err, enum error_code code, const char *field,
				    const char *fmt, va_list ap)
{
	const int errnum = code == ERROR_POLICY ? EPERM : EINVAL;

	if (err) {
		err->code = (int32_t)code;
		err->errnum = errnum;
		err->retry_after_s = 0;
		if (snprintf(err->field, sizeof(err->field), "%s", field) < 0)
			err->field[0] = '\0';
		set_text(err, fmt, ap);
	}
	return -errnum;
}

int error_field(struct error *err, const char *field, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = set_field(err, ERROR_INPUT, field, fmt, ap);
	va_end(ap);
	return r;
}

int error_refuse(struct error *err, const char *field, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = set_field(err, ERROR_POLICY, field, fmt, ap);
	va_end(ap);
	return r;
}

int error_retry(struct error *err, int r, int32_t after_s)
{
	if (err)
		err->retry_after_s = after_s;
	return r;
}

int error_wrap(struct error *err, int r, const char *fmt, ...)
{
	char context[sizeof(err->text)];
	char old[sizeof(err->text)];
	va_list ap;

	if (!err)
		return r;
	va_start(ap, fmt);
	if (vsnprintf(context, sizeof(context), fmt, ap) < 0)
		context[0] = '\0';
	va_end(ap);
	memcpy(old, err->text, sizeof(old));
	if (snprintf(err->text, sizeof(err->text), "%s: %s", context, old) < 0)
		err->text[0] = '\0';
	return r;
}

int error_oom(struct error *err)
{
	return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
}
