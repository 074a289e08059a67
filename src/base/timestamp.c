/* SPDX-License-Identifier: Apache-2.0 */
/* See timestamp.h. Years 1970 to 9999; a leap second counts as the second after it. */
#include "base/timestamp.h"

#include <stdbool.h>
#include <string.h>

enum { NANO_DIGITS = 9 };

struct timestamp_scanner {
	const char *at;
	bool bad;
};

static int64_t take_number(struct timestamp_scanner *s, int digits)
{
	int64_t value = 0;

	for (int i = 0; i < digits && !s->bad; i++, s->at++) {
		s->bad = *s->at < '0' || *s->at > '9';
		value = value * 10 + (*s->at - '0');
		if (s->bad)
			break;
	}
	return s->bad ? 0 : value;
}

static bool take_char(struct timestamp_scanner *s, const char *set)
{
	if (s->bad || !*s->at || !strchr(set, *s->at))
		return false;
	s->at++;
	return true;
}

static void need_char(struct timestamp_scanner *s, const char *set)
{
	s->bad = s->bad || !take_char(s, set);
}

/* Days since 1970-01-01 in the Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year, m = month <= 2 ? month + 9 : month - 3;

	return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static int64_t days_in(int64_t year, int64_t month)
{
	return days_of(month == 12 ? year + 1 : year, month % 12 + 1, 1) - days_of(year, month, 1);
}

static int64_t take_fraction_ns(struct timestamp_scanner *s)
{
	int64_t ns = 0;
	int digits = 0;

	if (!take_char(s, "."))
		return 0;
	while (!s->bad && *s->at >= '0' && *s->at <= '9') {
		int64_t digit = *s->at++ - '0';

		if (digits < NANO_DIGITS)
			ns = ns * 10 + digit;
		digits++;
	}
	s->bad = s->bad || digits == 0;
	for (; digits < NANO_DIGITS; digits++)
		ns *= 10;
	return ns;
}

static int64_t take_date_s(struct timestamp_scanner *s)
{
	int64_t year, month, day;

	year = take_number(s, 4);
	need_char(s, "-");
	month = take_number(s, 2);
	need_char(s, "-");
	day = take_number(s, 2);
	s->bad = s->bad || year < 1970 || month < 1 || month > 12 || day < 1 ||
		 day > days_in(year, month);
	return s->bad ? 0 : days_of(year, month, day) * 86400;
}

static int64_t take_time_s(struct timestamp_scanner *s)
{
	int64_t hour = take_number(s, 2), minute, second;

	need_char(s, ":");
	minute = take_number(s, 2);
	need_char(s, ":");
	second = take_number(s, 2);
	s->bad = s->bad || hour > 23 || minute > 59 || second > 60;
	return hour * 3600 + minute * 60 + second;
}

static int64_t take_zone_s(struct timestamp_scanner *s)
{
	const bool behind = *s->at == '-';
	int64_t hour, minute;

	if (take_char(s, "Zz"))
		return 0;
	need_char(s, "+-");
	hour = take_number(s, 2);
	need_char(s, ":");
	minute = take_number(s, 2);
	s->bad = s->bad || hour > 23 || minute > 59;
	return (behind ? -1 : 1) * (hour * 3600 + minute * 60);
}

static int parse_seconds(const char *text, int64_t *ret)
{
	struct timestamp_scanner s = { text, false };
	size_t digits = strspn(text, "0123456789");
	int64_t seconds, ns;

	if (digits == 0 || digits > 10)
		return -EINVAL;
	seconds = take_number(&s, (int)digits);
	/* An int64_t in ns ends in the year 2262. */
	ns = take_fraction_ns(&s);
	if (s.bad || *s.at || seconds >= INT64_MAX / NS_PER_SEC)
		return -EINVAL;
	*ret = seconds * NS_PER_SEC + ns;
	return 0;
}

int timestamp_parse(const char *text, int64_t *ret)
{
	struct timestamp_scanner s = { text, false };
	int64_t seconds, ns = 0;

	if (strlen(text) < 5 || text[4] != '-')
		return parse_seconds(text, ret);
	seconds = take_date_s(&s);
	if (!s.bad && *s.at) {
		need_char(&s, "Tt ");
		seconds += take_time_s(&s);
		ns = take_fraction_ns(&s);
		seconds -= take_zone_s(&s);
	}
	if (s.bad || *s.at || seconds < 0 || seconds >= INT64_MAX / NS_PER_SEC)
		return -EINVAL;
	*ret = seconds * NS_PER_SEC + ns;
	return 0;
}
