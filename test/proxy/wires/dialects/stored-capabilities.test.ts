import pino from 'pino';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { FileStore } from '../../../../src/checkpoint/file/file-store.ts';
import { MemoryRuns } from '../../../../src/checkpoint/memory/runs.ts';
import { MemoryStore } from '../../../../src/checkpoint/memory/store.ts';
import type { Notes } from '../../../../src/checkpoint/notes.ts';
import { replicasOf } from '../../../../src/checkpoint/owner.ts';
import { createSeal } from '../../../../src/checkpoint/seal.ts';
import type { Owner, Store } from '../../../../src/checkpoint/store.ts';
import { systemTime, type Time } from '../../../../src/lib/time.ts';
import { CapabilityMemory } from '../../../../src/proxy/wires/dialects/capability-memory.ts';
import { StoredCapabilities } from '../../../../src/proxy/wires/dialects/stored-capabilities.ts';
import { SEALING_KEY, temporaryDirectory } from '../../../checkpoint/fixtures.ts';
import { needs } from '../../../needs.ts';
import { redisDeployments } from '../../../redis/deployments.ts';

const TTL_MS = 3_600_000;
const DAY_MS = 24 * 60 * 60 * 1000;
const OWNER = replicasOf('s'.repeat(32));
const UPSTREAMS = { local: { base_url: 'http://llm.internal:8000/v1' } } as const;
const VLLM = { events: [{ system_fingerprint: 'vllm-0.24.0' }], headers: {} };

/** Each makes a new deployment for a test, which opens its stores one by one. */
const deployments: Record<string, () => () => Store | Promise<Store>> = {
  memory: () => {
    const runs = new MemoryRuns();
    return () => new MemoryStore({ time: systemTime, ttl_ms: TTL_MS, runs });
  },
  file: () => files(),
  'sealed file': () => files(SEALING_KEY),
};

function files(key?: string): () => Store {
  const options = { dir: temporaryDirectory(), ttl_ms: TTL_MS, lease_ms: 1000 } as const;
  const onError = (error: Error) => expect.unreachable(error.message);
  return () =>
    new FileStore({ ...options, seal: key === undefined ? undefined : createSeal([key]), onError });
}

for (const [name, deploy] of Object.entries(await redisDeployments())) {
  if ('missing' in deploy) test(`capabilities in the ${name} store`, needs(deploy), () => {});
  else deployments[name] = () => deploy({ ttl_ms: TTL_MS, lease_ms: 1000 });
}

interface Setting {
  readonly upstreams?: Readonly<Record<string, object>>;
  readonly owner?: Owner;
  readonly time?: Time;
}

/** The knowledge of a process with these notes. `said`: what it has logged. */
function processWith(
  notes: Notes,
  { upstreams = UPSTREAMS, owner = OWNER, time = systemTime }: Setting = {},
) {
  const said: string[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => said.push(line) });
  const options = { notes, owner, upstreams: upstreams as typeof UPSTREAMS, time, log };
  return { capabilities: new CapabilityMemory(time, new StoredCapabilities(options)), said };
}

describe.each(Object.keys(deployments))('what was learnt, in the %s store', (name) => {
  async function open(count: number): Promise<Store[]> {
    const openStore = deployments[name]?.();
    if (!openStore) throw new Error(`no store ${name}`);
    const stores: Store[] = [];
    for (let index = 0; index < count; index++) {
      const store = await openStore();
      stores.push(store);
      // A store that is still opening may not answer in time.
      await store.notes.get(OWNER, { kind: 'capabilities', name: '' });
    }
    onTestFinished(async () => {
      await Promise.all(stores.map((store) => store.close()));
    });
    return stores;
  }

  test('is known to the next process and to other replicas, of this upstream and this model', async () => {
    const [here, there] = await open(2);
    if (!here || !there) throw new Error('there are two');
    const first = processWith(here.notes).capabilities;
    first.rememberPrefill('local', 'llama', 'exact');
    first.rememberKeeping('local', 'llama', false);
    await vi.waitFor(async () => {
      const second = processWith(there.notes).capabilities;
      await second.consult('local', 'llama');
      expect(second.prefill('local', 'llama')).toBe('exact');
      expect(second.keeps('local', 'llama')).toBe(false);
      await second.consult('local', 'gemma');
      expect(second.prefill('local', 'gemma')).toBeUndefined();
      await second.consult('other', 'llama');
      expect(second.prefill('other', 'llama')).toBeUndefined();
    });
  });

  test('is found in the background by whatever asks for it', async () => {
    const [here, there] = await open(2);
    if (!here || !there) throw new Error('there are two');
    const target = { name: 'local', upstream: UPSTREAMS.local };
    processWith(here.notes).capabilities.recognise(target, 'llama', VLLM);
    await vi.waitFor(async () => {
      const second = processWith(there.notes).capabilities;
      expect(second.dialect(target, 'llama')).toBeUndefined();
      await vi.waitFor(() => expect(second.dialect(target, 'llama')?.name).toBe('vllm'), { timeout: 200 });
    });
  });

  test('is replaced by what is learnt later', async () => {
    const [here, there] = await open(2);
    if (!here || !there) throw new Error('there are two');
    const first = processWith(here.notes).capabilities;
    first.rememberPrefill('local', 'llama', 'exact');
    first.rememberPrefill('local', 'llama', 'new_turn');
    await vi.waitFor(async () => {
      const second = processWith(there.notes).capabilities;
      await second.consult('local', 'llama');
      expect(second.prefill('local', 'llama')).toBe('new_turn');
    });
  });
});

/** The notes of a memory store, and a record of what was asked of them. */
function observed(time: Time = systemTime) {
  const notes = new MemoryStore({ time, ttl_ms: TTL_MS, runs: new MemoryRuns() }).notes;
  const [put, got] = [vi.spyOn(notes, 'put'), vi.spyOn(notes, 'get')];
  return { notes, put, got };
}

function clock() {
  let now_ms = 0;
  const time: Time = {
    now: () => now_ms,
    wall: () => 1_700_000_000_000 + now_ms,
    after: systemTime.after,
  };
  const elapse = (duration_ms: number) => {
    now_ms += duration_ms;
  };
  return { time, elapse };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('what is stored', () => {
  test('belongs to no client, and has no address in it', async () => {
    const { notes, put } = observed();
    const upstreams = { local: { base_url: 'https://user:secret-key@llm.internal/v1?key=secret-key' } };
    processWith(notes, { upstreams }).capabilities.rememberPrefill('local', 'llama', 'exact');
    await settled();
    expect(put).toHaveBeenCalledOnce();
    expect(JSON.stringify(put.mock.calls)).not.toMatch(/secret-key|internal/);
    const stranger = processWith(notes, { owner: 'c'.repeat(64) as Owner }).capabilities;
    await stranger.consult('local', 'llama');
    expect(stranger.prefill('local', 'llama')).toBeUndefined();
  });

  test.each([
    ['address', { base_url: 'http://other.internal:8000/v1' }],
    ['configured dialect', { ...UPSTREAMS.local, dialect: 'vllm' }],
  ])('is nothing to an upstream of the same name with another %s', async (_, local) => {
    const { notes } = observed();
    processWith(notes).capabilities.rememberPrefill('local', 'llama', 'new_turn');
    await settled();
    const other = processWith(notes, { upstreams: { local } }).capabilities;
    await other.consult('local', 'llama');
    expect(other.prefill('local', 'llama')).toBeUndefined();
  });

  test('is forgotten a day after it was learnt, however often processes begin', async () => {
    const { time, elapse } = clock();
    const { notes, put } = observed(time);
    processWith(notes, { time }).capabilities.rememberPrefill('local', 'llama', 'exact');
    await settled();
    expect(put.mock.lastCall?.[3]).toBe(DAY_MS);
    elapse(DAY_MS - 1000);
    const late = processWith(notes, { time }).capabilities;
    await late.consult('local', 'llama');
    expect(late.prefill('local', 'llama')).toBe('exact');
    elapse(1000);
    expect(late.prefill('local', 'llama')).toBeUndefined();
  });

  test.each(['', 'nonsense', '{"version":9,"learnt_at_ms":1,"prefill":"exact"}'])(
    'is said in the log, and nothing else, when it is %j',
    async (value) => {
      const { notes, put } = observed();
      processWith(notes).capabilities.rememberPrefill('local', 'llama', 'exact');
      await settled();
      const [owner, key] = put.mock.lastCall ?? expect.unreachable();
      await notes.put(owner, key, value, TTL_MS);
      const { capabilities, said } = processWith(notes);
      await capabilities.consult('local', 'llama');
      expect(capabilities.prefill('local', 'llama')).toBeUndefined();
      expect(said.join('')).toContain('"upstream":"local"');
      expect(said.join('')).toContain('are unusable');
    },
  );

  test('is bounded, however many models clients name', async () => {
    const { notes, put } = observed();
    const { capabilities } = processWith(notes);
    for (let model = 0; model < 1500; model++) capabilities.rememberPrefill('local', `m${model}`, 'exact');
    await settled();
    expect(put).toHaveBeenCalledTimes(1000);
    // A stored model may have changed.
    capabilities.rememberPrefill('local', 'm7', 'new_turn');
    await settled();
    expect(put).toHaveBeenCalledTimes(1001);
  });

  test('is looked for once a minute at most, unless an answer was cut', async () => {
    const { time, elapse } = clock();
    const { notes, got } = observed(time);
    const { capabilities } = processWith(notes, { time });
    for (let run = 0; run < 10; run++) {
      capabilities.prefill('local', 'llama');
      await settled();
    }
    expect(got).toHaveBeenCalledTimes(1);
    await capabilities.consult('local', 'llama');
    expect(got).toHaveBeenCalledTimes(2);
    elapse(60_000);
    capabilities.prefill('local', 'llama');
    expect(got).toHaveBeenCalledTimes(3);
  });

  test('adds to what was learnt while it was looked for', async () => {
    const { notes } = observed();
    const before = processWith(notes).capabilities;
    before.rememberPrefill('local', 'llama', 'exact');
    await settled();
    const { capabilities } = processWith(notes);
    capabilities.prefill('local', 'llama');
    capabilities.rememberKeeping('local', 'llama', false);
    await settled();
    expect(capabilities.prefill('local', 'llama')).toBe('exact');
    const after = processWith(notes).capabilities;
    await after.consult('local', 'llama');
    expect([after.prefill('local', 'llama'), after.keeps('local', 'llama')]).toEqual(['exact', false]);
  });
});

describe('a store that fails', () => {
  test.each([
    ['refuses', () => Promise.reject(new Error('no space left on device'))],
    ['never answers', () => new Promise<never>(() => {})],
  ])('and %s delays nothing for long, and is left alone then', async (_, fail) => {
    const { notes, put, got } = observed();
    put.mockImplementation(fail);
    got.mockImplementation(fail);
    const { capabilities, said } = processWith(notes);
    const began_ms = performance.now();
    await capabilities.consult('local', 'llama');
    expect(performance.now() - began_ms).toBeLessThan(1000);
    capabilities.rememberPrefill('local', 'llama', 'exact');
    expect(capabilities.prefill('local', 'llama')).toBe('exact');
    for (let model = 0; model < 10; model++) await capabilities.consult('local', `m${model}`);
    await settled();
    expect(got).toHaveBeenCalledTimes(1);
    expect(put).not.toHaveBeenCalled();
    expect(said).toHaveLength(1);
    expect(said[0]).toContain('what was learnt about models is not shared');
  });

  test('is given what it did not take once it works again', async () => {
    const { time, elapse } = clock();
    const { notes, put } = observed(time);
    const { capabilities } = processWith(notes, { time });
    put.mockRejectedValueOnce(new Error('no space left on device'));
    capabilities.rememberPrefill('local', 'llama', 'exact');
    await settled();
    capabilities.rememberPrefill('local', 'llama', 'new_turn');
    await settled();
    expect(put).toHaveBeenCalledTimes(1);
    elapse(5000);
    capabilities.prefill('local', 'gemma');
    await settled();
    const next = processWith(notes, { time }).capabilities;
    await next.consult('local', 'llama');
    expect(next.prefill('local', 'llama')).toBe('new_turn');
  });
});
