const { execSync, spawn, spawnSync, fork } = require('child_process');
if (process.argv[2] === 'child') {
  process.on('message', m => { process.send(m.split('').reverse().join('')); process.disconnect(); });
} else {
  console.log(execSync('echo out; printf more').toString());
  console.log(spawnSync('sort', { input: 'b\na\n' }).stdout.toString());
  const s = spawn('sh', ['-c', 'cat; exit 3']);
  s.stdout.on('data', d => console.log('got', String(d)));
  s.on('close', code => {
    console.log('code', code);
    const f = fork(__filename, ['child']);
    f.on('message', m => console.log(m));
    f.on('exit', c => console.log('exit', c));
    f.send('abc');
  });
  s.stdin.end('text');
}
