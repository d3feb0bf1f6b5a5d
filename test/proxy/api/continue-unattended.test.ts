import { describe, expect, test } from 'vitest';
import { ownerOfClient } from '../../../src/checkpoint/owner.ts';
import type { Orphan } from '../../../src/checkpoint/store.ts';
import type { ClientConfiguration, Configuration } from '../../../src/config/configuration.ts';
import { ApiError } from '../../../src/lib/errors.ts';
import { MemoryBudget } from '../../../src/lib/memory-budget.ts';
import { ActiveWork } from '../../../src/proxy/api/api-context.ts';
import { callerOf } from '../../../src/proxy/api/caller.ts';
import { detachedNote } from '../../../src/proxy/api/respond.ts';
import { continueUnattended } from '../../../src/proxy/api/return.ts';
import { RunRegistry } from '../../../src/proxy/run/run-registry.ts';
import { RouteTable } from '../../../src/proxy/upstream/route-table.ts';
import { HealthRegistry } from '../../../src/proxy/upstream/target-health.ts';
import type { Plan } from '../../provider/script.ts';
import { Fleet } from '../../simulation/fleet.ts';
import { DEFAULTS, OWNER, RUN } from '../../simulation/simulate.ts';

const TEXT = 'Kelp grips the rock through the surge and does not let go.';
const PLAN: Plan = { parts: [{ text: TEXT }], prefill: 'vllm' };
const PACE_MS = 50;
const SECRET = 'secret';
const NOTE_MS = 3_600_000;
const { lease_ms } = DEFAULTS.checkpoint;

interface Setting {
  readonly configuration?: Partial<Configuration>;
  readonly memory?: MemoryBudget;
  readonly isDetached?: boolean;
  readonly api_key?: string | undefined;
}

/** A run that was lost halfway, and a replica that could continue it. */
async function lost({
  configuration,
  memory = new MemoryBudget(10_000_000),
  isDetached = true,
  ...key
}: Setting = {}) {
  const { api_key } = { api_key: 'operator-key', ...key };
  const fleet = new Fleet(PLAN, { dialect: 'vllm', pace_ms: PACE_MS });
  const first = fleet.replica();
  fleet.begin(first);
  await fleet.pass(PACE_MS * 8);
  if (isDetached) await first.context.store.notes.put(OWNER, detachedNote(RUN), '', NOTE_MS);
  first.life.kill();
  await fleet.pass(2 * lease_ms);
  const { context } = fleet.replica();
  const upstream = { ...context.configuration.upstreams.default, ...(api_key !== undefined && { api_key }) };
  const settings = { ...context.configuration, ...configuration, upstreams: { default: upstream } };
  const registry = new RunRegistry(settings.limits);
  const work = new ActiveWork();
  const unattended = {
    ...context,
    configuration: settings as Configuration,
    secret: SECRET,
    work,
    registry,
    memory,
    models: new RouteTable(settings as Configuration),
    healths: new HealthRegistry(settings as Configuration),
  };
  const { epoch } = await fleet.stored();
  const orphan: Orphan = { run: RUN, owner: OWNER, epoch };
  return {
    fleet,
    registry,
    memory,
    work,
    begin: () => fleet.time.drive(continueUnattended(orphan, unattended)),
  };
}

describe('a run whose client had left when its replica was lost', () => {
  test('is begun, counts while it lasts, and is whole in the end', async () => {
    const { fleet, registry, work, memory, begin } = await lost({
      configuration: { limits: { ...DEFAULTS.limits, runs_per_owner: 1 } },
    });
    expect(await begin()).toBe('begun');
    expect(work.count).toBe(1);
    expect(registry.holder(RUN)).toBeDefined();
    expect(() => registry.begin(OWNER)).toThrow(ApiError);
    await fleet.pass(PACE_MS * 50);
    expect(work.count).toBe(0);
    expect(registry.holder(RUN)).toBeUndefined();
    expect(memory.fits(memory.limit_bytes)).toBe(true);
    expect(await fleet.stored()).toMatchObject({ status: 'complete' });
    expect((await fleet.journal()).text).toBe(TEXT);
    const [, rest, ...more] = fleet.provider.requests;
    expect(rest).toBeDefined();
    expect(more).toEqual([]);
  });

  test.each([
    ['no target has a key of the operator’s', { api_key: undefined }],
    ['its client was connected', { isDetached: false }],
    [
      'its owner is none of the clients that may spend the key',
      { configuration: { clients: [{ name: 'app', token: 'token-of-sixteen' }] } },
    ],
  ] satisfies [string, Setting][])('never begins where %s', async (_, setting) => {
    const { fleet, work, memory, begin } = await lost(setting);
    expect(await begin()).toBe('never');
    expect(work.count).toBe(0);
    expect(memory.fits(memory.limit_bytes)).toBe(true);
    expect(await fleet.stored()).toMatchObject({ status: 'running', epoch: 1 });
  });

  test('begins later where its owner has as many runs as are allowed, or memory is short', async () => {
    const busy = await lost({ configuration: { limits: { ...DEFAULTS.limits, runs_per_owner: 1 } } });
    const other = busy.registry.begin(OWNER);
    expect(await busy.begin()).toBe('later');
    other.end();
    expect(await busy.begin()).toBe('begun');

    const full = await lost({ memory: new MemoryBudget(102_500) });
    expect(await full.begin()).toBe('later');
    expect(full.memory.fits(102_500)).toBe(true);
    expect(full.fleet.provider.requests).toHaveLength(1);
  });

  test('is handed over by a replica that shuts down', async () => {
    const { fleet, registry, work, begin } = await lost();
    await begin();
    await fleet.pass(PACE_MS * 3);
    await fleet.time.drive(registry.handOver(fleet.time, 1000));
    expect(work.count).toBe(0);
    expect(await fleet.stored()).toMatchObject({
      status: 'running',
      takeovers: [expect.anything()],
      holder: { state: 'released' },
    });
  });
});

describe('the caller of an owner', () => {
  const client = { name: 'app', token: 'token-of-sixteen', routes: ['own-*'] } as ClientConfiguration;
  const use = (route: string) => () => ({ route, isKeyed: true });

  test('is the client that has this owner, with its routes', () => {
    const caller = callerOf(ownerOfClient(SECRET, 'app'), { ...DEFAULTS, clients: [client] }, SECRET);
    expect(caller.client).toBe(client);
    expect(caller.refusal(use('own-*'))).toBeUndefined();
    expect(caller.refusal(use('other-*'))?.body).toContain('route_not_allowed');
  });

  test('may spend no key where clients are named, and it is none of them', () => {
    const caller = callerOf(OWNER, { ...DEFAULTS, clients: [client] }, SECRET);
    expect(caller.refusal(use('own-*'))?.body).toContain('unknown_client');
  });

  test('may have been admitted before where owners are users', () => {
    const settings = { ...DEFAULTS, clients: [client], owner: { header: 'x-user' } };
    expect(callerOf(OWNER, settings, SECRET).refusal(use('own-*'))).toBeUndefined();
  });

  test('may use everything where no clients are named', () => {
    expect(callerOf(OWNER, DEFAULTS, SECRET).refusal(use('own-*'))).toBeUndefined();
  });
});
