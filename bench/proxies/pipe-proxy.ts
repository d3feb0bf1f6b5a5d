// The minimal reverse proxy on node:http: no parsing, no limits, no recovery.
import { Agent, createServer, request as httpRequest } from 'node:http';

const upstream_port = Number(process.argv[2]);
const agent = new Agent({ keepAlive: true });

const server = createServer((request, response) => {
  const upstreamRequest = httpRequest(
    {
      agent,
      host: '127.0.0.1',
      port: upstream_port,
      method: request.method,
      path: request.url,
      headers: request.headers,
    },
    (upstreamResponse) => {
      response.writeHead(upstreamResponse.statusCode ?? 502, upstreamResponse.headers);
      upstreamResponse.pipe(response);
    },
  );
  upstreamRequest.on('error', () => response.destroy());
  response.on('close', () => upstreamRequest.destroy());
  request.pipe(upstreamRequest);
});

server.listen(0, '127.0.0.1', 1024, () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.send?.({ port: address.port });
});
