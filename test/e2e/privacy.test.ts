import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Deployment } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { post } from './raw-client.ts';
import { payloadsOf } from './stream-client.ts';
import {
  ALL_OF_TALK,
  beginTalk,
  fetchRun,
  fetchRuns,
  RESUMABLE,
  repeatTalk,
  resumeTalk,
  saidBy,
  TALK,
  talkRequest,
} from './talk.ts';

const PROVIDER_KEY = 'sk-of-the-provider';
const CLIENT_KEY = 'client-key';
const THREAD = 'a thread that says who is talking';
const KEY = 'a key that says what is bought';
const QUESTION = 'something that nobody else may know';
const SEALING_KEY = 'a key that the store never gets to see';

let deployment: Deployment;
/** Takes one run through everything: begun, lost with its replica, read, resumed, repeated, cancelled. */
beforeAll(async () => {
  deployment = await Deployment.start({
    replicas: 2,
    checkpoint: { lease_ms: 1000 },
    apiKey: PROVIDER_KEY,
  });
  const { holdfast, other } = deployment;
  const private_ = { 'holdfast-thread': THREAD, 'idempotency-key': KEY };
  const client = await beginTalk(deployment, QUESTION, { ...RESUMABLE, ...private_ });
  await holdfast.kill('SIGKILL');
  await client.ended();

  await (await fetchRun(other, client.run)).json();
  await fetchRun(other, `${client.run}/stream?starting_after=999999`);
  const rest = payloadsOf(await (await resumeTalk(other, client, client.payloads.length)).text());
  expect(saidBy([...client.payloads, ...rest])).toEqual(ALL_OF_TALK);
  expect(saidBy((await repeatTalk(other, QUESTION, private_)).payloads)).toEqual(ALL_OF_TALK);
  const mismatch = await post(other.url, { ...talkRequest(QUESTION), seed: 7 }, private_);
  expect(mismatch.status).toBe(422);
  await fetchRun(other, client.run, { method: 'DELETE' });
});
afterAll(() => deployment.close());

const logOf = ({ log }: HoldfastProcess): string => log.map((line) => JSON.stringify(line)).join('\n');

/** The contents and the names of a store's files. */
function storedBytes(directory: string): string {
  const names = readdirSync(directory, { recursive: true }).map(String);
  const files = names.map((name) => join(directory, name)).filter((path) => statSync(path).isFile());
  return [...names, ...files.map((path) => readFileSync(path, 'latin1'))].join('\n');
}

test('no credential is anywhere in the store', () => {
  const bytes = storedBytes(deployment.store);
  expect(bytes).toContain(QUESTION);
  for (const secret of [PROVIDER_KEY, CLIENT_KEY]) expect(bytes).not.toContain(secret);
});

test('no content, client or key is in a log', () => {
  const said = ['w1 ', 'w100', 'call_brest', 'Lorient'];
  for (const replica of deployment.replicas) {
    const log = logOf(replica);
    expect(log).toContain('listening');
    for (const secret of [PROVIDER_KEY, CLIENT_KEY, THREAD, KEY, QUESTION, ...said])
      expect(log).not.toContain(secret);
  }
  expect(logOf(deployment.other)).toContain('run ended');
});

test('a store that is sealed says nothing of what was said either', async () => {
  const sealed = await Deployment.start({ checkpoint: { sealing_keys: [SEALING_KEY] } });
  try {
    const client = await beginTalk(sealed, QUESTION, { ...RESUMABLE, 'holdfast-thread': THREAD });
    await client.ended();
    expect(saidBy(client.payloads)).toMatchObject({ text: ALL_OF_TALK.text, calls: ALL_OF_TALK.calls });
    const state = await (await fetchRun(sealed.holdfast, client.run)).json();
    expect(state).toMatchObject({ status: 'complete', text: ALL_OF_TALK.text, thread: THREAD });
    const list = await (await fetchRuns(sealed.holdfast, `?thread=${encodeURIComponent(THREAD)}`)).json();
    expect(list).toMatchObject({ data: [{ id: client.run, thread: THREAD }] });
    // The store is written in the background.
    await vi.waitFor(() => expect(storedBytes(sealed.store)).toContain(client.run), 10_000);
    const bytes = storedBytes(sealed.store);
    const text = JSON.stringify(TALK.parts);
    for (const secret of [SEALING_KEY, THREAD, QUESTION, 'w100', 'call_brest', text])
      expect(bytes).not.toContain(secret);
  } finally {
    await sealed.close();
  }
});
