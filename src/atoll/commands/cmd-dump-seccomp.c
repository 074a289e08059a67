/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll dump-seccomp`: the system call filter as table and program, for reviewers. */
#include <string.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/commands/printer.h"
#include "atoll/commands/say.h"
#include "base/buf.h"
#include "plan/filter.h"

enum { LISTING_MAX = 1 << 20 };

/* Without a word: the filter of sandboxes. */
static int set_profile(void *data, const char *word, struct error *err)
{
	enum filter_profile *profile = data;

	for (int i = 0; i < _FILTER_MAX; i++)
		if (strcmp(word, filter_profile_name((enum filter_profile)i)) == 0) {
			*profile = (enum filter_profile)i;
			return 0;
		}
	return error_set(err, ERROR_INPUT, EINVAL,
			 "there is no filter %.40s; name default, off or minimal", word);
}

static const struct option_list dump_options = { .word = set_profile };

static int dump_main(const struct command *self, int argc, char **argv)
{
	enum filter_profile profile = FILTER_DEFAULT;
	struct arguments args = { .argc = argc, .argv = argv };
	_cleanup_buf_ struct buf out = { 0 };
	struct error err = { 0 };
	int r = options_parse(self->options, &args, &profile, &err);

	buf_init(&out, LISTING_MAX);
	if (r < 0)
		return say_error(&err);
	if (r > 0)
		return help_command(self);
	r = filter_print(profile, &out);
	if (r < 0) {
		say("cannot print the filter: %s", strerror(-r));
		return EXIT_OURS;
	}
	return print_out(&out);
}

const struct command cmd_dump_seccomp = {
	.name = "dump-seccomp",
	.usage = "[default|off]",
	.summary = "print the system call filter",
	.options = &dump_options,
	.main = dump_main,
	.hidden = true,
};
