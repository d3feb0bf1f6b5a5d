import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../find-program.ts';
import { freePort, startProgram, untilHttpOk } from '../processes.ts';
import type { Target } from '../target.ts';

export function findNginx(): string | undefined {
  return findProgram('nginx');
}

export async function startNginx(program: string, upstream_port: number, directory: string): Promise<Target> {
  const port = await freePort();
  const home = join(directory, 'nginx');
  mkdirSync(home, { recursive: true });
  const configuration = join(home, 'nginx.conf');
  writeFileSync(configuration, configurationText(home, port, upstream_port));
  const log_path = join(home, 'output.log');
  const running = startProgram(program, ['-p', home, '-c', configuration, '-e', log_path], log_path);
  await untilHttpOk(`http://127.0.0.1:${port}/ready`, running);
  return { name: 'nginx', port, pid: running.pid, stop: () => running.stop() };
}

function configurationText(home: string, port: number, upstream_port: number): string {
  // Started as root, nginx would run its worker as a user without access to the temporary folder.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  return `
${user}
daemon off;
worker_processes 1;
pid ${home}/nginx.pid;
events { worker_connections 8192; }
http {
  access_log off;
  keepalive_requests 1000000;
  client_body_temp_path ${home}/client;
  proxy_temp_path ${home}/proxy;
  fastcgi_temp_path ${home}/fastcgi;
  uwsgi_temp_path ${home}/uwsgi;
  scgi_temp_path ${home}/scgi;
  upstream provider { server 127.0.0.1:${upstream_port}; keepalive 1024; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location = /ready { return 200; }
    location / {
      proxy_pass http://provider;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 600s;
    }
  }
}
`;
}
