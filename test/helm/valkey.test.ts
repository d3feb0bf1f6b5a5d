import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { startReplicaProcess, temporaryDirectory } from '../cli-process.ts';
import { needs } from '../needs.ts';
import { valkeyBinary } from '../redis/binaries.ts';
import { freePort } from '../redis/free-port.ts';
import { Chart } from './chart.ts';
import { configurationOf, podOf } from './resource.ts';

const chart = Chart.use();
const valkey = await valkeyBinary();
const PASSWORD = 'password-of-valkey';

/** Starts a real server with the container's arguments, but its own directory and port. */
async function startValkey(path: string, words: readonly string[], port: number): Promise<Redis> {
  const directory = temporaryDirectory();
  const here = words.map((word) =>
    word === '/data' ? directory : word.replace('$(HOLDFAST_VALKEY_PASSWORD)', PASSWORD),
  );
  const server = spawn(path, [...here, '--port', String(port)], { stdio: 'ignore' });
  const client = new Redis({ port, password: PASSWORD, maxRetriesPerRequest: null, retryStrategy: () => 50 });
  // Until the server listens, it refuses connections.
  client.on('error', () => {});
  onTestFinished(() => {
    client.disconnect();
    server.kill('SIGKILL');
  });
  await client.ping();
  return client;
}

it('the Valkey of the chart starts as configured, and is what the gateway uses', needs(valkey), async () => {
  if ('missing' in valkey) return;
  const resources = await chart.render('gateway-valkey.yaml');
  const container = podOf(resources, 'StatefulSet').spec.containers[0];
  const port = await freePort();
  const client = await startValkey(valkey.path, container?.args ?? [], port);

  const settings = await client.config('GET', 'append*', 'maxmemory*', 'save');
  expect(settings).toEqual(
    expect.arrayContaining(['appendonly', 'yes', 'appendfsync', 'everysec', 'noeviction', '805306368']),
  );

  const file = join(temporaryDirectory(), 'holdfast.yaml');
  const configuration = configurationOf(resources);
  expect(configuration).toContain('@release-holdfast-valkey:6379/0');
  writeFileSync(file, configuration.replace('@release-holdfast-valkey:6379/', `@127.0.0.1:${port}/`));
  const { admin } = await startReplicaProcess(['--config', file], {
    HOLDFAST_SECRET: 'correct horse battery staple',
    HOLDFAST_VALKEY_PASSWORD: PASSWORD,
    HOLDFAST_LISTEN_HOST: '127.0.0.1',
    HOLDFAST_LISTEN_ADMIN_HOST: '127.0.0.1',
  });
  expect(await (await fetch(`${admin}/readyz`)).json()).toEqual({ status: 'ready' });
  expect(await client.keys('holdfast:*')).not.toEqual([]);
});
