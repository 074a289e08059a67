// SPDX-License-Identifier: Apache-2.0
// What Node.js programs are told about the machine: processors and memory of their limits (`prelude` in languages/).
//
// Node loads this file ahead of every program and every worker. The sandbox has no /proc/stat, from which os.cpus() is made, and
// no /proc/meminfo; other calls of the system answer with the host's numbers. So the functions below are replaced where module
// 'os' takes them from when it is loaded, which most programs never do.
'use strict';

{
	const cpus = Number('{cpus}');
	const memory = Number('{memory_mb}') * 2 ** 20;
	const { noDeprecation } = process;

	try {
		process.noDeprecation = true;
		const os = process.binding('os');
		// Of each processor: model, speed, and five times.
		os.getCPUs = () => Array.from({ length: cpus }, () => ['unknown', 0, 0, 0, 0, 0, 0]).flat();
		os.getAvailableParallelism = () => cpus;
		os.getTotalMem = () => memory;
		os.getFreeMem = () => Math.max(memory - process.memoryUsage.rss(), 0);
	} catch {
		// A Node.js that is built in another way, or that forbids it to the program: it answers with what it sees.
	}
	if (noDeprecation === undefined)
		delete process.noDeprecation;
	else
		process.noDeprecation = noDeprecation;
	const { _pathCache: paths } = module.constructor;
	for (const key of Object.keys(paths))
		if (paths[key] === __filename)
			delete paths[key];
	delete require.cache[__filename];
	// A worker of a runtime that was started ahead (start.js) has no such words.
	if (process.abort.disabled)
		process.execArgv = process.execArgv.filter((word, i, all) => word !== __filename && all[i + 1] !== __filename);
}
