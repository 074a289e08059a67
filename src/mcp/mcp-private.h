/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of mcp/: the server, its clients, its calls. */
#pragma once

#include "base/caller.h"
#include "base/loop/loop.h"
#include "mcp/input.h"
#include "mcp/mcp.h"
#include "mcp/message.h"
#include "mcp/prompt.h"
#include "mcp/replay.h"
#include "mcp/resource.h"
#include "mcp/tool.h"
#include "mcp/version.h"

enum {
	MCP_CLIENTS_MAX = 4096, /* legacy sessions and WebSockets */
	MCP_CLIENTS_PER_CALLER = 1024,
	MCP_CALLS_MAX = 8192, /* that are being answered */
	MCP_CALLS_PER_CALLER = 2048,
	MCP_CALLS_PER_CLIENT = 64,
	MCP_LISTENS_PER_CALLER = 256, /* streams that wait for news */
	MCP_LISTENS_MAX = 2048,
	MCP_IDLE_S = 1800, /* until a client without calls and streams is forgotten */
	MCP_SECRET_BYTES = 32,
	MCP_ID_BYTES = 40,
	MCP_TASK_ID = 192,
};

/* --- mcp-dispatch.c --- */

/* A method is a row: the eras that have it, and the function that answers it. */
struct mcp_method {
	const char *name;
	unsigned eras;	      /* enum mcp_era */
	const char *name_key; /* the member of params that the header Mcp-Name repeats */
	int ttl_ms;	/* modern: how long the result may be cached; -1: it has no such member */
	bool is_public; /* modern: by all callers together */
	/* As a tool's call. params may be NULL. */
	int (*answer)(struct mcp_call *call, const json_t *params);
};
extern const struct mcp_method mcp_methods[];
const struct mcp_method *mcp_method_find(const char *name, enum mcp_era era);

/* --- the server --- */

/* What is the same for every client, made once. */
struct mcp_lists {
	json_t *tools, *prompts, *resources, *templates; /* arrays, as the lists show them */
	json_t *schemas; /* of tools' arguments, by name, where a header line repeats one */
};

struct mcp {
	struct mcp_options options;
	struct mcp_lists lists;
	struct mcp_client *clients; /* a list, the longest idle last */
	struct mcp_call *calls;
	struct mcp_subscription *subscriptions;
	struct source *tick;
	unsigned char secret[MCP_SECRET_BYTES]; /* of states that clients bring back */
	int64_t next_request;			/* ids of requests to clients */
	bool draining;
};

/* --- clients: mcp-client.c --- */

/*
 * A client with state between its messages: of a legacy session over HTTP (known by `id`), or of a WebSocket (known by its
 * connection; both eras).
 */
struct mcp_client {
	struct mcp *mcp;
	struct mcp_client *previous, *next;
	char id[MCP_ID_BYTES]; /* "": a WebSocket */
	bool sees_all;
	struct charge charge; /* names the caller */
	const char *version;  /* that `initialize` agreed on; NULL: none yet */
	json_t *able;	      /* the client's capabilities */
	enum mcp_log_level log_level;
	struct mcp_door door; /* of a WebSocket */
	struct mcp_replay replay;
	size_t n_calls;
	int64_t used_ns;
	bool closing;
};

enum mcp_outcome mcp_client_find(struct mcp *m, const struct mcp_arrival *in,
				 struct mcp_client **ret);
void mcp_client_used(struct mcp_client *c);
/* Cancels its calls, ends its streams. */
void mcp_client_end(struct mcp_client *c);
/* Forgets clients that have been idle for too long. */
void mcp_clients_expire(struct mcp *m);
/* The call of this client with this id, or NULL. */
struct mcp_call *mcp_client_call(const struct mcp_client *c, const json_t *id);

/* --- calls: call.c --- */

/* The message that a call answers. */
struct mcp_call_message {
	json_t *root; /* the whole, whose parts the next three are */
	const json_t *id, *params, *arguments;
	const struct mcp_headers
		*headers; /* while mcp_take() is on the stack; NULL: none, or later */
};

struct mcp_call_charges {
	struct charge call;    /* names the caller */
	struct charge bytes;   /* of the message, whose tree is kept in the call */
	struct charge listens; /* of a call that waits for news */
};

/* The handler's own data, and how to cancel and free them. */
struct mcp_call_handler {
	void *data;
	const struct mcp_call_ops *ops;
};

/* The progress of which the client asked to be told. */
struct mcp_call_progress {
	const json_t *token;
	double done;
	int64_t paid_ns; /* time for which progress has been paid */
};

/* mcp-task.c */
struct mcp_call_task {
	struct source *timer; /* until the call becomes a task */
	bool is_answered;   /* the call has been answered with a task: its own answer is dropped */
	json_t *record;	    /* of tasks/get: the task that the result goes into */
	char execution[32]; /* that the call's work is; "": not known */
};

/* resource.c */
struct mcp_call_resource {
	struct mcp_uri uri; /* its texts are parts of `text` */
	char *text;
};

struct mcp_call {
	struct mcp *mcp;
	struct mcp_call *previous, *next;
	struct mcp_client *client; /* NULL: a modern call over HTTP, or the client has gone */
	struct mcp_stream *stream; /* legacy over HTTP, once it has said something */
	struct mcp_door door;
	enum mcp_era era;
	const char *version;
	const struct mcp_method *method;
	const struct mcp_tool *tool; /* of tools/call */
	struct mcp_call_message message;
	bool sees_all;
	struct mcp_call_charges charges;
	int64_t started_ns;
	struct mcp_call_handler handler;
	bool is_cancelled;
	bool *ended; /* set when the call is freed while mcp_take() is on the stack */
	struct mcp_call_progress progress;
	enum mcp_log_level log_level; /* from which on the client asked to be told */
	struct mcp_asking *asking;    /* input.c; or NULL */
	struct mcp_call_task task;
	unsigned listens_to; /* enum mcp_change; subscription.c */
	struct mcp_call_resource resource;
	char session[MCP_ID_BYTES]; /* that `initialize` has begun */
};

/* Sends a message of the call; takes over the tree. */
void mcp_call_say(struct mcp_call *call, json_t *message);
/* Ends the call with this text of an answer, to be freed here; NULL: no memory. */
void mcp_call_end(struct mcp_call *call, enum mcp_outcome outcome, char *text);
/* The client does not want it any more. */
void mcp_call_cancel(struct mcp_call *call);
/* As mcp_call_fail(), with the outcome for the door. */
void mcp_call_reject(struct mcp_call *call, enum mcp_outcome outcome, int code, const char *text,
		     json_t *data);
/* Answers it with this result, although its handler goes on; takes over the tree. */
void mcp_call_detach(struct mcp_call *call, json_t *result);
/* Calls the handler again, from its beginning. */
void mcp_call_again(struct mcp_call *call);
/* Without an answer: the server ends. */
void mcp_call_free(struct mcp_call *call);
/* The client lacks a capability: answers so. Takes over required, the capabilities as the client would declare them. */
void mcp_call_lacks(struct mcp_call *call, const char *capability, json_t *required);
/* {"name", "version", …} */
json_t *mcp_server_info(void);
enum mcp_log_level mcp_log_level_called(const char *name);

/* --- methods --- */
/* mcp-dispatch.c */
int mcp_answer_initialize(struct mcp_call *call, const json_t *params);
int mcp_answer_discover(struct mcp_call *call, const json_t *params);
int mcp_answer_ping(struct mcp_call *call, const json_t *params);
int mcp_answer_set_level(struct mcp_call *call, const json_t *params);
/* tool.c */
int mcp_answer_tools_list(struct mcp_call *call, const json_t *params);
int mcp_answer_tools_call(struct mcp_call *call, const json_t *params);
/* Answers with a list of one page; -EINVAL in words for a cursor. */
int mcp_answer_whole_list(struct mcp_call *call, const char *key, json_t *list,
			  const json_t *params);
int mcp_lists_make(struct mcp *m) _must_check_;
void mcp_lists_free(struct mcp *m);
const struct mcp_tool *mcp_tool_find(const struct mcp *m, const char *name);
/* resource.c */
int mcp_answer_resources_list(struct mcp_call *call, const json_t *params);
int mcp_answer_templates_list(struct mcp_call *call, const json_t *params);
int mcp_answer_resources_read(struct mcp_call *call, const json_t *params);
json_t *mcp_resources_listed(const struct mcp *m, bool templates);
/* The row of a URI. ret's texts are parts of *ret_text, which is to be freed. */
const struct mcp_resource *mcp_resource_find(const struct mcp *m, const char *text,
					     struct mcp_uri *ret, char **ret_text);
const struct mcp_resource *mcp_template_find(const struct mcp *m, const char *uri_template);
/* prompt.c */
int mcp_answer_prompts_list(struct mcp_call *call, const json_t *params);
int mcp_answer_prompts_get(struct mcp_call *call, const json_t *params);
json_t *mcp_prompts_listed(const struct mcp *m);
const struct mcp_prompt *mcp_prompt_find(const struct mcp *m, const char *name);
/* subscription.c */
int mcp_answer_subscribe(struct mcp_call *call, const json_t *params);
int mcp_answer_unsubscribe(struct mcp_call *call, const json_t *params);
int mcp_answer_listen(struct mcp_call *call, const json_t *params);
/* Those of a client, or of a call (the other is NULL). */
void mcp_unsubscribe_all(struct mcp *m, const struct mcp_client *client,
			 const struct mcp_call *call);
void mcp_listeners_end(struct mcp *m);
/* A message that concerns no request of the client. */
void mcp_client_say(struct mcp_client *c, json_t *message);
bool mcp_lists_may_change(const struct mcp *m);
/* mcp-task.c */
int mcp_answer_task_get(struct mcp_call *call, const json_t *params);
int mcp_answer_task_cancel(struct mcp_call *call, const json_t *params);
int mcp_answer_task_update(struct mcp_call *call, const json_t *params);
/* The task of call->task.record with its result, or its error; takes over what it gets. */
json_t *mcp_task_wrap(struct mcp_call *call, json_t *result);
json_t *mcp_task_fail(struct mcp_call *call, int code, const char *text, json_t *data);
/* The execution of a task, a part of id; NULL: it is none. */
const char *mcp_task_execution(struct mcp_call *call, const char *id);
/* A task as tasks/get describes it, without its result; execution: as engine_get(). */
json_t *mcp_task_state(const char *id, const json_t *execution);
/* input.c */
/* What a modern request brings; -EINVAL: the call is answered. */
int mcp_input_read(struct mcp_call *call) _must_check_;
/* A legacy client's answer to a request. */
void mcp_input_take(struct mcp_client *client, const struct mcp_message *message);
/* The call waits for such answers: no handler has it. */
bool mcp_input_waits(const struct mcp_call *call);
void mcp_asking_free(struct mcp_asking *a);
/* complete.c */
int mcp_answer_complete(struct mcp_call *call, const json_t *params);
