/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug report: PC-Agent-Claw's fields (status, exit_code, execution_time, timestamp, language,
 * container_id, output, resource_usage; error_type and error_message of a failure; output_files), then Atoll's
 * own. Everything is read from the result. The limits are those of the request over the defaults, unless the
 * caller gives the ones in force.
 */
#include "run/analyse/analyse.h"

#include "spec/knob.h"

#include <string.h>

static const json_t *at(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static json_t *share(const json_t *value)
{
	return value ? json_incref((json_t *)(uintptr_t)value) : json_null();
}

static json_t *number(double value)
{
	return value >= 0 ? json_real(value) : json_null();
}

static double number_at(const json_t *object, const char *key)
{
	const json_t *value = at(object, key);

	return json_is_number(value) ? json_number_value(value) : -1;
}

static json_t *rounded(double value)
{
	return value >= 0 ? json_real((double)(int64_t)(MIN(value, 1e12) * 1000 + 0.5) / 1000)
			  : json_null();
}

/* Limits as numbers in the units of the result; an invalid value counts as not given. */
static json_t *limits_of(const struct report_input *in)
{
	const json_t *asked = at(in->request, "limits");
	struct limits limits;
	const char *key;
	json_t *value;

	if (in->limits)
		return share(in->limits);
	limits_presets(&limits);
	json_object_foreach((json_t *)(uintptr_t)asked, key, value)
	{
		const struct knob *k = knob_find(key);
		int64_t amount;

		if (k && knob_parse_json(k, value, &amount, NULL) == 0)
			knob_set(k, &limits, amount);
	}
	return limits_to_json(&limits);
}

/* The used amount of a limit, or -1. */
static double peak_of(const json_t *result, const char *key)
{
	static const struct {
		const char *limit, *member, *inside;
	} rows[] = {
		{ "timeout", "duration", NULL },
		{ "cpu_time", "cpu_time", NULL },
		{ "memory", "memory_peak", NULL },
		{ "pids", "pids_peak", "usage" },
	};
	double out = number_at(result, "stdout_bytes"), err = number_at(result, "stderr_bytes");

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].limit, key) == 0)
			return number_at(rows[i].inside ? at(result, rows[i].inside) : result,
					 rows[i].member);
	if (strcmp(key, "output") == 0 || strcmp(key, "output_total") == 0)
		return MAX(out, err);
	return -1;
}

static bool was_hit(const json_t *result, const char *key)
{
	const char *named = json_string_value(at(at(result, "cause"), "limit_key"));
	const json_t *hit;
	size_t i;

	if (named && strcmp(named, key) == 0)
		return true;
	json_array_foreach((json_t *)(uintptr_t)at(at(result, "usage"), "limit_hits"), i,
			   hit) if (strcmp(json_string_value(hit) ? json_string_value(hit) : "",
					   key) == 0) return true;
	return false;
}

static json_t *limits_against_peaks(const struct report_input *in)
{
	static const char *const shown[] = { "timeout", "cpu_time",	"memory", "pids",
					     "output",	"output_total", "disk",	  "file_size" };
	json_t *limits = limits_of(in), *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		double limit = number_at(limits, shown[i]), peak = peak_of(in->result, shown[i]);
		bool hit = was_hit(in->result, shown[i]);

		/* The cause has a peak that the result's counters lack. */
		if (hit && peak < 0)
			peak = number_at(at(in->result, "cause"), "peak");
		if (json_array_append_new(
			    list,
			    json_pack("{s:s, s:o, s:o, s:o, s:b}", "name", shown[i], "limit",
				      share(at(limits, shown[i])), "peak", number(peak), "share",
				      limit > 0 && peak >= 0 ? rounded(peak / limit) : json_null(),
				      "hit", hit)) < 0)
			break;
	}
	json_decref(limits);
	return list;
}

static json_t *language_text(const json_t *result)
{
	const char *name = json_string_value(at(result, "language"));
	const char *runtime = json_string_value(at(result, "runtime"));

	if (!name)
		return json_null();
	return runtime ? json_sprintf("%s (%s)", name, runtime) : json_string(name);
}

static json_t *usage_of(const json_t *result)
{
	const json_t *usage = at(result, "usage");
	double cpu = number_at(result, "cpu_time"), wall = number_at(result, "duration");

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "memory_usage",
			 share(at(result, "memory_peak")), "cpu_percent",
			 cpu >= 0 && wall > 0 ? rounded(cpu / wall * 100) : json_null(), "cpu_time",
			 share(at(result, "cpu_time")), "pids_peak", share(at(usage, "pids_peak")),
			 "io_read", share(at(usage, "io_read")), "io_write",
			 share(at(usage, "io_write")));
}

/* PC-Agent-Claw's text for a timeout, the runtime's own for an exception, otherwise Atoll's sentence. */
static json_t *error_message(const json_t *result, const json_t *analysis)
{
	const char *type = json_string_value(at(analysis, "error_type"));
	const char *exception = json_string_value(at(analysis, "exception"));
	const char *message = json_string_value(at(analysis, "message"));
	const json_t *cause = at(result, "cause");
	const char *kind = json_string_value(at(cause, "kind"));
	double limit = number_at(cause, "limit");

	if (type && strcmp(type, "timeout") == 0 && limit >= 0)
		return limit == (double)(int64_t)MIN(limit, 1e12)
			       ? json_sprintf("Execution timed out after %.0fs", limit)
			       : json_sprintf("Execution timed out after %gs", limit);
	/* For a limit or a signal, Atoll's sentence is complete. */
	if (exception && kind && strcmp(kind, "exit") == 0)
		return message ? json_sprintf("%s: %s", exception, message)
			       : json_string(exception);
	return message ? share(at(analysis, "message")) : share(at(cause, "detail"));
}

static int add_failure(json_t *report, const json_t *result, const json_t *analysis)
{
	const char *type = json_string_value(at(analysis, "error_type"));
	bool ours = type && strcmp(type, "sandbox_error") == 0;

	if (json_object_set_new(report, "error_type",
				ours ? json_string("execution_error")
				     : share(at(analysis, "error_type"))) < 0)
		return -ENOMEM;
	return json_object_set_new(report, "error_message", error_message(result, analysis)) < 0
		       ? -ENOMEM
		       : 0;
}

static int add_report_files(json_t *report, const json_t *result)
{
	json_t *files = json_object();
	const json_t *file;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)at(result, "files"), i, file)
	{
		const char *path = json_string_value(at(file, "path"));

		if (path &&
		    json_object_set_new(files, path,
					json_pack("{s:o, s:o}", "size", share(at(file, "size")),
						  "sha256", share(at(file, "sha256")))) < 0)
			break;
	}
	if (json_object_size(files) > 0)
		return json_object_set_new(report, "output_files", files) < 0 ? -ENOMEM : 0;
	json_decref(files);
	return 0;
}

json_t *debug_report_make(const struct report_input *in)
{
	const json_t *result = in->result;
	json_t *analysis = in->analysis ? share(in->analysis) : analysis_make(in->request, result);
	json_t *report = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o}, s:o}", "status",
				   json_is_true(at(analysis, "is_error")) ? "failure" : "success",
				   "exit_code", share(at(result, "exit_code")), "execution_time",
				   rounded(number_at(result, "duration")), "timestamp",
				   share(at(result, "created_at")), "language",
				   language_text(result), "container_id", share(at(result, "id")),
				   "output", "stdout", share(at(result, "stdout")), "stderr",
				   share(at(result, "stderr")), "resource_usage", usage_of(result));
	int r = report && analysis ? 0 : -ENOMEM;

	if (r >= 0 && json_is_true(at(analysis, "is_error")))
		r = add_failure(report, result, analysis);
	if (r >= 0)
		r = add_report_files(report, result);
	if (r >= 0 && (json_object_set_new(report, "cause", share(at(result, "cause"))) < 0 ||
		       json_object_set_new(report, "analysis", json_incref(analysis)) < 0 ||
		       json_object_set_new(report, "limits", limits_against_peaks(in)) < 0 ||
		       json_object_set_new(report, "denials", share(at(result, "denials"))) < 0))
		r = -ENOMEM;
	json_decref(analysis);
	if (r < 0) {
		json_decref(report);
		return NULL;
	}
	return report;
}
