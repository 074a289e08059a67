for (const word of process.argv.slice(2))
	console.log(word);
