import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { PROBE } from '../../src/plans/seam/mode.ts';
import type { Missing } from '../debian-program.ts';
import { needs } from '../needs.ts';
import type { Plan } from '../provider/script.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { Deployment, modelOf } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { rawAnswer, streamRequest } from './raw-client.ts';

vi.setConfig({ testTimeout: 60_000 });

const TEXT = 'Kelp grips the rock through the surge and lets go of nothing at all.';
const MODEL = modelOf('h1');
const cut = (continuation: Plan['continuation'], event: number): Plan => ({
  parts: [{ text: TEXT }],
  ...(continuation && { continuation }),
  faults: [{ kind: 'reset', at: { event } }],
});

const binary = await redisBinary();
const redis = 'missing' in binary ? undefined : await RedisServer.start({ binary: binary.path });
afterAll(() => redis?.stop());

/** The requests that an answer takes (the role of the last message of each) and the text that the client gets. */
async function ask(deployment: Deployment, holdfast: HoldfastProcess, question: string, plan: Plan) {
  deployment.plan(question, plan);
  const { text } = await rawAnswer(holdfast.url, streamRequest(MODEL, question));
  const asked = deployment.requests(question).map(({ body }) => {
    const { messages } = body as { messages: readonly { role: string }[] };
    return messages.at(-1)?.role;
  });
  return { asked, text };
}

const stores: readonly (readonly [string, object | Missing])[] = [
  ['a file store', {}],
  ['a sealed file store', { sealing_keys: ['k'.repeat(32)] }],
  ['Redis', redis === undefined ? binary : { store: redis.url }],
];

describe.each(stores)('what was learnt of a model, with %s', (_, checkpoint) => {
  test('is known after a restart, at the first cut', needs(checkpoint), async () => {
    const secret = 's'.repeat(32);
    const deployment = await Deployment.start({ secret, checkpoint: { ...checkpoint } });
    onTestFinished(() => deployment.close());
    const { holdfast } = deployment;
    const first = await ask(deployment, holdfast, 'before', cut('rejects_prefill', 6));
    expect(first).toEqual({ asked: ['user', 'assistant', 'user'], text: TEXT });
    await holdfast.stop();

    const successor = await deployment.addReplica();
    const second = await ask(deployment, successor, 'after', cut('rejects_prefill', 6));
    expect(second).toEqual({ asked: ['user', 'user'], text: TEXT });
  });

  test('is known to a replica that was running before', needs(checkpoint), async () => {
    const secret = 't'.repeat(32);
    const deployment = await Deployment.start({ secret, checkpoint: { ...checkpoint }, replicas: 2 });
    onTestFinished(() => deployment.close());
    // This replica has looked for stored capabilities and found none.
    await ask(deployment, deployment.other, 'uncut', { parts: [{ text: TEXT }] });
    await ask(deployment, deployment.holdfast, 'cut here', cut('obedient', 7));
    // The prefix is too short to try an unknown target with, so a prefill shows that the target is known to be exact.
    const second = await ask(deployment, deployment.other, 'cut there', cut('obedient', 3));
    expect(second).toEqual({ asked: ['user', 'assistant'], text: TEXT });
  });
});

test('a probe is made once, at the first cut of all, and is not made again after a restart', async () => {
  const deployment = await Deployment.start({ recovery: { probe: 'on_first_cut' } });
  onTestFinished(() => deployment.close());
  const { holdfast } = deployment;
  deployment.plan(PROBE.question, { parts: [{ text: `${PROBE.said}ve, six.` }], prefilled: 'exact' });
  const repaid = async (process: HoldfastProcess) =>
    (await process.metrics()).get('holdfast_tokens_total{kind="repaid"}') ?? 0;
  const plan = (event: number): Plan => ({ ...cut('obedient', event), prefilled: 'exact' });
  const exact = { asked: ['user', 'assistant'], text: TEXT };

  const questions = Array.from({ length: 6 }, (_, index) => `at once ${index}`);
  // The prefix is too short to try an unknown target with, so a prefill shows that the probe has taken place.
  const answers = await Promise.all(questions.map((each) => ask(deployment, holdfast, each, plan(4))));
  expect(answers).toEqual(questions.map(() => exact));
  expect(deployment.requests(PROBE.question)).toHaveLength(1);
  expect(deployment.requests(PROBE.question)[0]?.headers.authorization).toBe('Bearer client-key');
  expect(await repaid(holdfast)).toBeGreaterThan(0);
  await holdfast.stop();

  const successor = await deployment.addReplica();
  expect(await ask(deployment, successor, 'after', plan(3))).toEqual(exact);
  expect(deployment.requests(PROBE.question)).toHaveLength(1);
  expect(await repaid(successor)).toBe(0);
});
