import { expect, test } from 'vitest';
import { DamageReports } from '../../src/checkpoint/damage-reports.ts';
import type { Damage } from '../../src/checkpoint/store.ts';
import { newRunId } from './fixtures.ts';

const DAMAGE: Damage = { record: 3, seq: 5, reason: 'checksum mismatch' };

test('damage is reported once per run, again when it is different, and whenever a run continues after it', () => {
  const told: string[] = [];
  const reports = new DamageReports((error) => told.push(error.message));
  const [run, other] = [newRunId(), newRunId()];
  for (let reading = 0; reading < 5; reading++) reports.found(run, DAMAGE);
  expect(told).toHaveLength(1);
  reports.found(other, DAMAGE);
  reports.found(run, { ...DAMAGE, record: 2 });
  expect(told).toHaveLength(3);
  reports.rewound(run, { ...DAMAGE, record: 2 });
  expect(told).toHaveLength(4);
});

test('the same damage is not told again because more of the run is behind it by now', () => {
  const told: string[] = [];
  const reports = new DamageReports((error) => told.push(error.message));
  const run = newRunId();
  for (let last = 6; last < 20; last++)
    reports.found(run, { ...DAMAGE, reason: `checksum mismatch; discarded: events 6 to ${last}` });
  expect(told).toHaveLength(1);
});

test('the damage of a bounded number of runs is remembered', () => {
  let told = 0;
  const reports = new DamageReports(() => told++);
  const runs = Array.from({ length: 1001 }, newRunId);
  for (const run of runs) reports.found(run, DAMAGE);
  reports.found(runs.at(-1) as (typeof runs)[0], DAMAGE);
  expect(told).toBe(1001);
  reports.found(runs[0] as (typeof runs)[0], DAMAGE);
  expect(told).toBe(1002);
});
