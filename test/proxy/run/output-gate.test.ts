import { expect, test } from 'vitest';
import { LEASE_MS, outputGate } from './output-gate-setting.ts';

const chunkOf = (content: string) => JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content } }] });

test('a process that was stopped while it read a batch asks the store before it shows that batch', async () => {
  const proof = Promise.withResolvers<boolean>();
  const { time, client, output, show } = outputGate({ proven: () => proof.promise });
  show(chunkOf('Kelp'));
  expect(output.flush()).toBeUndefined();
  const before = client.body;
  expect(before).toContain('Kelp');

  show(chunkOf(' grips'));
  time.skip(LEASE_MS / 2);
  const waiting = output.flush();
  expect(client.body).toBe(before);
  proof.resolve(true);
  await waiting;
  expect(client.body).toContain(' grips');
  output.close();
});
