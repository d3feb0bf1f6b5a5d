import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { needs } from '../needs.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { Balancer } from './balancer.ts';
import {
  aiSdkChat,
  anthropicMessage,
  type ConnectForDocuments,
  langchainInvoke,
  openaiChat,
  openaiCompletion,
  openaiResponse,
  pythonDocuments,
} from './clients/documents.ts';
import { Deployment, modelOf } from './deployment.ts';
import { pythonEnvironment } from './python/environment.ts';
import { callTo, TIDES } from './situations.ts';

const LEASE_MS = 1000;
const STORED_MS = 60_000;
/** The SDK retries by itself, and the balancer sends it to another replica. */
const RETRIES = 5;
/** Providers count a prompt's tokens by its length, which must be the same in every case. */
const QUESTION_CHARACTERS = 160;
const TEXT = Array.from({ length: 80 }, (_, index) => `w${index} à 満潮 🌊`).join(' ');

const redis = await redisBinary();
const python = await pythonEnvironment();
const CONNECTIONS: readonly ConnectForDocuments[] = [
  ...[openaiChat, openaiCompletion, openaiResponse, anthropicMessage, aiSdkChat, langchainInvoke],
  ...('missing' in python ? [] : pythonDocuments(python.interpreter)),
];

/** Every SDK asks once for a whole answer. The replica that collects it is killed, and the SDK repeats its request. */
describe('an SDK gets its document although a replica died', needs(redis), () => {
  let server: RedisServer;
  let deployment: Deployment;
  let balancer: Balancer;

  beforeAll(async () => {
    if ('missing' in redis) return;
    server = await RedisServer.start({ binary: redis.path });
    deployment = await Deployment.start({
      replicas: 2,
      secret: 'the secret that both replicas share',
      checkpoint: { store: server.url, lease_ms: LEASE_MS },
    });
    balancer = await Balancer.open(deployment.replicas.map(({ url }) => url));
  });
  afterAll(async () => {
    balancer.close();
    await deployment.close();
    await server.stop();
  });

  test('that was collecting it', { timeout: 4 * STORED_MS }, async () => {
    const clients = CONNECTIONS.map((connect) => connect(balancer.url, RETRIES));
    const askAll = (what: string, model: string, isCut: boolean) =>
      clients.map((client) => {
        const content = `${client.name}: ${what} `.padEnd(QUESTION_CHARACTERS, '.');
        const isText = client.wire === 'completions';
        deployment.plan(content, {
          parts: isText ? [{ text: TEXT }] : [{ text: TEXT }, { tool: callTo('call_brest', 'Brest') }],
          faults: isCut ? [{ kind: 'silence', at: { event: 120 } }] : [],
        });
        return { content, answer: client.ask({ model, content, tools: isText ? [] : [TIDES] }) };
      });
    const { holdfast } = deployment;
    const whole = await Promise.all(askAll('uncut', modelOf('direct'), false).map(({ answer }) => answer));

    const cut = askAll('cut', modelOf('h1'), true);
    await vi.waitFor(
      async () => {
        const appends = (await holdfast.metrics()).get(
          'holdfast_checkpoint_append_seconds_count{store="redis"}',
        );
        expect(appends).toBeGreaterThanOrEqual(cut.length);
      },
      { timeout: STORED_MS, interval: 50 },
    );
    await holdfast.kill('SIGKILL');
    for (const [index, { content, answer }] of cut.entries()) {
      expect(withoutUsage(await answer), content).toEqual(withoutUsage(whole[index]));
      const requests = deployment.requests(content).map(({ body }) => JSON.stringify(body));
      expect(requests, content).toHaveLength(2);
      // The second request asks only for the rest.
      expect(requests[1]?.length, content).toBeGreaterThan(Number(requests[0]?.length) + 100);
    }
    await Promise.all(clients.map((client) => client.close?.()));
  });
});

/** The usage of the attempt that was lost with the replica is unknown. */
const withoutUsage = (answer: unknown): unknown =>
  JSON.parse(JSON.stringify(answer, (key, value: unknown) => (/usage/i.test(key) ? undefined : value)));
