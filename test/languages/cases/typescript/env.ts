const greeting: string | undefined = process.env.GREETING;
console.log(greeting);
