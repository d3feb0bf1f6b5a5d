// The health check of the container image, which has no shell and no curl. Exits with 0 while the process is alive,
// even while it drains: restarting a draining container would cut the streams that are still open.
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { parseArgs } from 'node:util';
import { adminHost } from './dist/config/configuration.js';
import { DEFAULT_UPSTREAM } from './dist/config/environment.js';
import { loadConfiguration } from './dist/config/load.js';

const TIMEOUT_MS = 4000;

/** Flags of process 1 that set the address of its admin port. */
const FLAGS = { host: 'host', 'admin-host': 'admin_host', 'admin-port': 'admin_port' };
/** The configuration isn't valid without an upstream, but any will do here. */
const ANY_UPSTREAM = { path: DEFAULT_UPSTREAM, text: 'http://127.0.0.1', source: '' };
const EVERY_INTERFACE = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);

function listening() {
  const words = readFileSync('/proc/1/cmdline', 'utf8').split('\0');
  const names = ['config', ...Object.keys(FLAGS)];
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  const args = words.slice(words.indexOf('serve') + 1);
  const { config, ...values } = parseArgs({ args, options, strict: false }).values;
  const flags = Object.entries(FLAGS).flatMap(([name, key]) =>
    values[name] === undefined ? [] : [{ path: ['listen', key], text: values[name], source: `--${name}` }],
  );
  const sources = { file: config, flags: [ANY_UPSTREAM, ...flags], environment: process.env };
  const { listen } = loadConfiguration(sources).configuration;
  const host = adminHost(listen);
  return { host: EVERY_INTERFACE.get(host) ?? host, port: listen.admin_port };
}

const request = get({ ...listening(), path: '/livez', agent: false, timeout: TIMEOUT_MS });
request.on('timeout', () => request.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
request.on('error', ({ message }) => {
  console.error(message);
  process.exit(1);
});
request.on('response', ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1));
