import * as http from 'http';
import { AddressInfo } from 'net';
const server: http.Server = http.createServer((req, res) => { res.end(`you asked for ${req.url}`); });
server.listen(0, () => {
  const { port } = server.address() as AddressInfo;
  http.get({ port, path: '/typed', agent: false }, res => {
    res.setEncoding('utf8');
    res.on('data', (d: string) => console.log(res.statusCode, d));
    res.on('end', () => server.close());
  });
});
