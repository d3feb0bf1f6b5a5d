import { expect, it } from 'vitest';
import { runOptions } from '../../../src/proxy/api/run-options.ts';
import { newRunId } from '../../checkpoint/fixtures.ts';

const RUN = newRunId();

it('nothing is asked for by default, nor by headers that are empty', () => {
  const defaults = { events: 'none', resumable: false };
  const names = ['events', 'resume', 'thread', 'run-id', 'deadline-ms'].map((name) => `holdfast-${name}`);
  expect(runOptions({})).toEqual(defaults);
  expect(runOptions(Object.fromEntries([...names, 'idempotency-key'].map((name) => [name, ''])))).toEqual(
    defaults,
  );
});

it('what headers ask for', () => {
  expect(
    runOptions({
      'holdfast-events': 'comments',
      'holdfast-resume': '1',
      'holdfast-thread': 't'.repeat(256),
      'holdfast-run-id': RUN,
      'idempotency-key': 'key',
      'holdfast-deadline-ms': '30000',
    }),
  ).toEqual({
    events: 'comments',
    resumable: true,
    deadline_ms: 30_000,
    thread: 't'.repeat(256),
    run: RUN,
    key: 'key',
  });
});

it('a client that only knows the id of its last event says by it which run it is', () => {
  expect(runOptions({ 'last-event-id': `${RUN}.1.7` }).run).toBe(RUN);
  expect(runOptions({ 'last-event-id': '7' }).run).toBeUndefined();
});

it.each<readonly [string, string, string]>([
  ['holdfast-events', 'all', "Invalid value for 'Holdfast-Events': it must be none, chunks, comments."],
  ['holdfast-resume', 'yes', "Invalid value for 'Holdfast-Resume': it must be 1."],
  ['holdfast-thread', 't'.repeat(257), "Invalid value for 'Holdfast-Thread'"],
  ...['0', '-1', '1.5', 'soon', '2147483648'].map(
    (value) =>
      [
        'holdfast-deadline-ms',
        value,
        "Invalid value for 'Holdfast-Deadline-Ms': it must be a number of milliseconds, from 1 to 2147483647.",
      ] as const,
  ),
  ['holdfast-run-id', 'run_short', 'There is no such run'],
])('%s: %s is refused', (name, value, message) => {
  expect(() => runOptions({ [name]: value })).toThrow(message);
});
