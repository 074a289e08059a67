/* SPDX-License-Identifier: Apache-2.0 */
/* See presets.h. */
#include "spec/presets.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "spec/knob.h"
#include "spec/read.h"

enum { FOREIGN_TEXT_MAX = 4096 };

struct preset_entry {
	struct preset preset;
	const char *image, *seccomp_profile; /* read and ignored */
};

static int preset_read_memory(const struct reader *r, const struct schema_field *f _unused_,
			      const json_t *value, void *object)
{
	struct preset *p = &((struct preset_entry *)object)->preset;
	const struct knob *k = knob_find("memory");
	const json_int_t mib = json_integer_value(value);

	if (!json_is_integer(value) || mib < k->min / MiB || mib > k->max / MiB)
		return reader_refuse(r, "%s is not a whole number of MiB from %lld to %lld",
				     quote_json(value).text, (long long)(k->min / MiB),
				     (long long)(k->max / MiB));
	/* A value in `limits` wins. */
	if (p->set & knob_bit(k))
		return 0;
	p->limits.memory_bytes = mib * MiB;
	p->set |= knob_bit(k);
	return 0;
}

#define MEMBER(name) .offset = offsetof(struct preset_entry, name)
static const struct schema_field preset_fields[] = {
	{ .key = "image", .read = read_text, MEMBER(image), .max = FOREIGN_TEXT_MAX },
	{ .key = "seccomp_profile",
	  .read = read_text,
	  MEMBER(seccomp_profile),
	  .max = FOREIGN_TEXT_MAX },
	{ .key = "limits",
	  .read = read_limits,
	  MEMBER(preset.limits),
	  .beside = offsetof(struct preset_entry, preset.set) },
	{ .key = "default_memory_mb", .read = preset_read_memory },
	{ .key = "allow_network", .read = read_bool, MEMBER(preset.allow_network) },
	{ 0 },
};

/* "python3.10" is python 3.10, "javascript-node18" is javascript node18, "c++17" is c++ 17. */
static void preset_cut_version(struct preset *p)
{
	const char *name = p->name;
	size_t n = 0;

	while (isalpha((unsigned char)name[n]) || name[n] == '+' || name[n] == '#')
		n++;
	(void)snprintf(p->language, sizeof(p->language), "%.*s", (int)n, name);
	n += strspn(name + n, "@-_ ");
	(void)snprintf(p->version, sizeof(p->version), "%s", name + n);
}

int presets_parse(const json_t *root, struct presets *ret, struct error *err)
{
	const struct reader top = { .err = err };
	struct presets all = { .n = 0 };
	const char *name;
	json_t *value;

	if (!json_is_object(root))
		return error_set(err, ERROR_INPUT, EINVAL,
				 "it is not an object of languages: {\"python\": {…}}");
	json_object_foreach((json_t *)(uintptr_t)root, name, value)
	{
		const struct reader at = reader_at(&top, name);
		struct preset_entry e = { .preset = { .set = 0 } };
		int r;

		if (all.n == PRESETS_MAX || strlen(name) > PRESET_NAME_MAX)
			return reader_refuse(
				&at,
				"there are more than %d languages, or a name is longer than %d",
				PRESETS_MAX, PRESET_NAME_MAX);
		r = read_object(&at, value, SHAPE_OF(preset_fields), &e);
		if (r < 0)
			return r;
		(void)snprintf(e.preset.name, sizeof(e.preset.name), "%s", name);
		preset_cut_version(&e.preset);
		all.list[all.n++] = e.preset;
	}
	*ret = all;
	return 0;
}
