import { describe, expect, it } from 'vitest';
import { systemTime } from '../../src/lib/time.ts';
import { Metrics } from '../../src/metrics/metrics.ts';
import { createAdminServer } from '../../src/server/admin.ts';
import type { ReloadReport } from '../../src/server/reload-report.ts';
import { replicaStatus } from '../../src/status/replica-status.ts';
import { RunBoard } from '../../src/status/run-board.ts';
import { StatusReport } from '../../src/status/status-report.ts';
import { ReplicaStore } from '../replica.ts';
import { fleetOf } from '../status/fleet-of.ts';

const APPLIED: ReloadReport = {
  outcome: 'applied',
  changed: ['routes'],
  restart_required: ['listen.port'],
  warnings: [],
};

function adminThat(outcome: ReloadReport) {
  const store = new ReplicaStore();
  const metrics = new Metrics();
  const board = new RunBoard({ time: systemTime, content: false });
  const state = { draining: () => false, active: () => 0 };
  const parts = { ...state, store, metrics, board, time: systemTime };
  const report = new StatusReport({
    ...parts,
    started_at_ms: 0,
    fleet: fleetOf({ notes: store.notes, time: systemTime, name: 'alone', isShared: false }),
    links: () => ({}),
    content: false,
    api: () => ({ url: '', try: '', resume: '' }),
    targets: () => [],
  });
  let reloads = 0;
  const admin = createAdminServer({
    exposition: (accept) => metrics.exposition(accept),
    readiness: async () => ({ status: 'ready' }),
    hosts: () => [],
    status: replicaStatus({ board, report, time: systemTime, brief: () => ({}) }),
    reload: async () => {
      reloads++;
      return outcome;
    },
  });
  return { admin, count: () => reloads };
}

const RELOAD = { method: 'POST', url: '/reload' } as const;

describe('POST /reload', () => {
  it.each(['127.0.0.1', '127.3.2.1', '::1', '::ffff:127.0.0.1'])(
    'says what has changed to a program at %s',
    async (remoteAddress) => {
      const { admin } = adminThat(APPLIED);
      const answer = await admin.inject({ ...RELOAD, remoteAddress });
      expect([answer.statusCode, answer.json()]).toEqual([200, APPLIED]);
    },
  );

  it.each([
    { remoteAddress: '10.0.0.7' },
    { remoteAddress: '::ffff:10.0.0.7' },
    { headers: { origin: 'http://127.0.0.1:9090' } },
    { headers: { 'sec-fetch-site': 'none' } },
  ])('is refused to another machine and to web pages: %j', async (asked) => {
    const { admin, count } = adminThat(APPLIED);
    const answer = await admin.inject({ ...RELOAD, ...asked });
    expect(answer.statusCode).toBe(403);
    expect(answer.json()).toMatchObject({ error: { code: 'reload_not_allowed' } });
    expect(count()).toBe(0);
  });

  it('answers 422 with each problem, by field and place', async () => {
    const problems = [
      { path: 'listen.port', message: 'must be a number.', source: 'holdfast.yaml:2:3' },
      { path: 'routes[0].targets', message: 'is required.' },
    ];
    const { admin } = adminThat({ outcome: 'refused', problems });
    const answer = await admin.inject(RELOAD);
    expect(answer.statusCode).toBe(422);
    const { error, ...rest } = answer.json<{ error: { code: string; message: string } }>();
    expect(rest).toEqual({ outcome: 'refused', problems });
    expect(error.code).toBe('configuration_invalid');
    expect(error.message).toContain('holdfast.yaml:2:3: listen.port: must be a number.');
    expect(error.message).toContain('routes[0].targets: is required.');
  });

  it('is not there by GET, which links and images could ask for', async () => {
    const { admin, count } = adminThat(APPLIED);
    expect((await admin.inject({ ...RELOAD, method: 'GET' })).statusCode).toBe(404);
    expect(count()).toBe(0);
  });
});
