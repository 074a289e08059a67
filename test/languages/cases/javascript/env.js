console.log(process.env.GREETING);
