/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See mount-table.h. A line is "id parent device root POINT options…"; the point has space, tab, newline and backslash as \ooo. Lines
 * may be longer than any buffer, because the options of an overlay name all its layers. So the text is read byte by byte.
 */
#include "base/sys/mount-table.h"

#include "base/path.h"

#include <errno.h>
#include <unistd.h>

enum { POINT_FIELD = 4, POINT_BYTES = 1024, OCTAL_DIGITS = 3 };

struct line {
	char point[POINT_BYTES];
	size_t len;
	unsigned field, digits; /* digits: of an escape, that are still to come */
	unsigned char escaped;
};

static int line_add(struct line *l, char c)
{
	if (l->digits > 0) {
		l->escaped = (unsigned char)(l->escaped << 3 | ((c - '0') & 7));
		if (--l->digits > 0)
			return 0;
		c = (char)l->escaped;
	} else if (c == '\\') {
		l->digits = OCTAL_DIGITS;
		l->escaped = 0;
		return 0;
	}
	if (l->len + 1 >= sizeof(l->point))
		return -ENAMETOOLONG;
	l->point[l->len++] = c;
	l->point[l->len] = '\0';
	return 0;
}

int mounts_below(int table_fd, const char *top, int (*found)(void *data, const char *path),
		 void *data)
{
	struct line line = { 0 };
	char piece[4096];
	ssize_t n;

	if (lseek(table_fd, 0, SEEK_SET) < 0)
		return -errno;
	while ((n = read(table_fd, piece, sizeof(piece))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			int r = 0;

			if (piece[i] == '\n')
				line = (struct line){ 0 };
			else if (piece[i] != ' ')
				r = line.field == POINT_FIELD ? line_add(&line, piece[i]) : 0;
			else if (line.field++ == POINT_FIELD && path_is_below(line.point, top) &&
				 strcmp(line.point, top) != 0)
				r = found(data, line.point);
			if (r != 0)
				return r;
		}
	return n < 0 ? -errno : 0;
}
