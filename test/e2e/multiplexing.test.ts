import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Fault } from '../provider/fault.ts';
import { Deployment, modelOf } from './deployment.ts';
import { rawAnswer, streamRequest } from './raw-client.ts';

const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
const CLIENTS = 12;
const RESETS = 12;

let deployment: Deployment;
beforeAll(async () => {
  // The reset also interrupts the runs that share the connection.
  deployment = await Deployment.start({ recovery: { max_attempts: 10 } });
});
afterAll(() => deployment.close());

/** More than enough time to detect a lost connection and recover. */
const ANSWER_MAX_MS = 15_000;

async function ask(question: string, faults: readonly Fault[]): Promise<void> {
  deployment.plan(question, { parts: [{ text: TEXT }], faults });
  const signal = AbortSignal.timeout(ANSWER_MAX_MS);
  const answer = await rawAnswer(deployment.holdfast.url, streamRequest(modelOf('h2'), question), signal);
  expect(answer).toMatchObject({ text: TEXT, finish: 'stop', done: true });
}

/**
 * Node 22 and 24 can lose an HTTP/2 session over TLS: if a write is the first to hit the reset, the session never reads
 * or writes again, emits no event, and still accepts later requests.
 */
test('a connection that is reset while others use it takes no later request with it', async () => {
  let asked = 0;
  let over = false;
  const askOn = async () => {
    while (!over) await ask(`other ${asked++}`, []);
  };
  const reset = async () => {
    for (let count = 0; count < RESETS; count++) {
      await ask(`reset ${count}`, [{ kind: 'reset', at: { event: 6 } }]);
    }
    over = true;
  };
  await Promise.all([reset(), ...Array.from({ length: CLIENTS }, askOn)]);
  expect(asked).toBeGreaterThan(CLIENTS);
}, 120_000);
