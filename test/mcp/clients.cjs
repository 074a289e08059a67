// SPDX-License-Identifier: Apache-2.0
// Runs a plan of tool calls with one of the official SDK clients, and prints what it saw as JSON. Every schema is compiled, and every result
// validated, by ajv in strict mode.
//
// stdin: {modules, client: "sdk" | "client", pin: null | "2026-07-28", url | command + env, plan: [{name, arguments, keep: {variable: key}}]}
"use strict";
const { createRequire } = require("node:module");
const { readFileSync } = require("node:fs");

const job = JSON.parse(readFileSync(0, "utf8"));
const load = createRequire(job.modules + "/there.cjs");
const Ajv = load("ajv/dist/2020").default;
const info = { name: "atoll-test", version: "1" };

function old() {
	const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
	const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
	const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
	return { client: new Client(info), StdioClientTransport, StreamableHTTPClientTransport };
}

function fresh() {
	const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
	const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");
	const options = job.pin ? { versionNegotiation: { mode: { pin: job.pin } } } : { versionNegotiation: { mode: "auto" } };
	return { client: new Client(info, options), StdioClientTransport, StreamableHTTPClientTransport };
}

function fill(value, kept) {
	if (typeof value === "string" && value.startsWith("$"))
		return kept[value.slice(1)];
	if (Array.isArray(value))
		return value.map((one) => fill(one, kept));
	if (value && typeof value === "object")
		return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fill(one, kept)]));
	return value;
}

async function main() {
	const ajv = new Ajv({ strict: true, strictTypes: false, allErrors: true });
	const { client, StdioClientTransport, StreamableHTTPClientTransport } = job.client === "sdk" ? old() : fresh();
	const transport = job.url
		? new StreamableHTTPClientTransport(new URL(job.url))
		: new StdioClientTransport({ command: job.command[0], args: job.command.slice(1), env: job.env, stderr: "inherit" });
	await client.connect(transport);
	const { tools } = await client.listTools();
	const outputs = {};
	for (const tool of tools) {
		ajv.compile(tool.inputSchema);
		outputs[tool.name] = ajv.compile(tool.outputSchema);
	}
	const seen = { tools: tools.map((tool) => tool.name), server: client.getServerVersion(), version: client.getNegotiatedProtocolVersion?.(), calls: [] };
	const kept = {};
	for (const step of job.plan) {
		const result = await client.callTool({ name: step.name, arguments: fill(step.arguments, kept) });
		const valid = outputs[step.name](result.structuredContent);
		seen.calls.push({ name: step.name, is_error: result.isError ?? false, errors: valid ? null : outputs[step.name].errors,
			content: result.content, structured: result.structuredContent });
		for (const [variable, path] of Object.entries(step.keep ?? {}))
			kept[variable] = path.split(".").reduce((at, key) => at?.[key], result.structuredContent);
	}
	seen.prompts = client.getServerCapabilities()?.prompts ? (await client.listPrompts()).prompts.map((one) => one.name) : [];
	seen.templates = client.getServerCapabilities()?.resources ? (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate) : [];
	await client.close();
	process.stdout.write(JSON.stringify(seen));
}

main().catch((error) => {
	process.stderr.write(`${error?.stack ?? error}\n${JSON.stringify(error?.data ?? null)}\n`);
	process.exit(1);
});
