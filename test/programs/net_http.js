const http = require('http');
const server = http.createServer((req, res) => {
  let body = '';
  req.on('data', piece => body += piece);
  req.on('end', () => { res.writeHead(200, { 'X-Kind': 'test' }); res.end(JSON.stringify({ url: req.url, method: req.method, body })); });
});
server.listen(0, '127.0.0.1', async () => {
  const port = server.address().port;
  const ask = (options, body) => new Promise((resolve, reject) => {
    const req = http.request({ port, host: '127.0.0.1', ...options }, res => {
      let text = '';
      res.on('data', p => text += p);
      res.on('end', () => resolve([res.statusCode, res.headers['x-kind'], text]));
    });
    req.on('error', reject);
    req.end(body);
  });
  console.log(await ask({ path: '/a' }));
  console.log(await ask({ path: '/b', method: 'POST' }, 'hello'));
  console.log((await fetch(`http://localhost:${port}/c`)).status);
  server.closeAllConnections?.();
  server.close(() => console.log('closed'));
});
