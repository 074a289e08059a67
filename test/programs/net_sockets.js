const net = require('net'), dgram = require('dgram'), dns = require('dns');
const server = net.createServer(c => c.on('data', d => c.end(String(d).toUpperCase())));
server.listen(0, '::1', () => {
  const c = net.connect(server.address().port, '::1', () => c.write('over six'));
  c.on('data', d => console.log(String(d)));
  c.on('close', () => server.close(() => {
    const u = dgram.createSocket('udp4');
    u.on('message', m => { console.log(String(m)); u.close(); dns.lookup('localhost', (e, a) => console.log(e, a.length > 2)); });
    u.bind(0, '127.0.0.1', () => u.send('datagram', u.address().port, '127.0.0.1'));
  }));
});
