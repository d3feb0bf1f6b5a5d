import { expect, it } from 'vitest';
import { conversationOf, profileOf, runOptions } from '../../../src/proxy/api/run-options.ts';
import { newRunId } from '../../checkpoint/fixtures.ts';

const RUN = newRunId();

it('nothing is asked for by default, nor by headers that are empty', () => {
  const defaults = { events: 'none', resumable: false };
  const names = [
    'events',
    'tool-calls',
    'resume',
    'thread',
    'run-id',
    'deadline-ms',
    'task',
    'task-session',
    'task-step',
    'task-steps-total',
    'task-deadline-ms',
    'task-budget-tokens',
    'parent-task',
  ].map((name) => `holdfast-${name}`);
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
      'holdfast-task': 'T23',
      'holdfast-task-session': 's'.repeat(256),
    }),
  ).toEqual({
    events: 'comments',
    resumable: true,
    deadline_ms: 30_000,
    thread: 't'.repeat(256),
    run: RUN,
    key: 'key',
    task: { task: 'T23', session: 's'.repeat(256) },
  });
});

it('a task has a parent, a name for its step, and terms, where they are named', () => {
  const headers = {
    'holdfast-task': 'T23',
    'holdfast-task-step': 'greet',
    'holdfast-parent-task': 'T1',
    'holdfast-task-steps-total': '7',
    'holdfast-task-deadline-ms': '60000',
    'holdfast-task-budget-tokens': '100',
  };
  expect(runOptions(headers).task).toEqual({
    task: 'T23',
    step: 'greet',
    parent: 'T1',
    terms: { steps_total: 7, deadline_ms: 60_000, budget_tokens: 100 },
  });
});

it('a task is no part of itself', () => {
  expect(() => runOptions({ 'holdfast-task': 'T23', 'holdfast-parent-task': 'T23' })).toThrow(
    "Invalid value for 'Holdfast-Parent-Task': it must be another task than Holdfast-Task.",
  );
});

it.each([
  ['Holdfast-Task-Steps-Total', 'steps, from 1 to 1000000'],
  ['Holdfast-Task-Deadline-Ms', 'milliseconds, from 1 to 31622400000'],
  ['Holdfast-Task-Budget-Tokens', 'tokens, from 1 to 1000000000000'],
])('%s is a number of %s, beside a task', (header, range) => {
  const name = header.toLowerCase();
  for (const value of ['0', '-1', '1.5', 'some', '99999999999999'])
    expect(() => runOptions({ 'holdfast-task': 'T23', [name]: value })).toThrow(
      `Invalid value for '${header}': it must be a number of ${range}.`,
    );
  expect(() => runOptions({ [name]: '7' })).toThrow(
    `Invalid value for '${header}': it must be beside Holdfast-Task.`,
  );
});

it('a task needs no session', () => {
  expect(runOptions({ 'holdfast-task': 'T23' }).task).toEqual({ task: 'T23' });
});

it.each([
  ['live', undefined, 'held', 'live'],
  ['held', undefined, 'live', 'none'],
  [undefined, undefined, 'live', 'live'],
  [undefined, undefined, 'held', 'none'],
  [undefined, 'chunks', 'held', 'chunks'],
  ['live', 'comments', 'held', 'comments'],
] as const)(
  'calls are shown as the request says, or else as is configured: %s, %s, %s',
  (calls, events, preset, mode) => {
    const headers = { 'holdfast-tool-calls': calls, 'holdfast-events': events };
    expect(runOptions(headers, preset).events).toBe(mode);
  },
);

it('held calls and advisory events exclude each other', () => {
  expect(() => runOptions({ 'holdfast-tool-calls': 'held', 'holdfast-events': 'chunks' })).toThrow(
    "Invalid value for 'Holdfast-Tool-Calls': it must be live beside Holdfast-Events.",
  );
});

it('a client that only knows the id of its last event says by it which run it is', () => {
  expect(runOptions({ 'last-event-id': `${RUN}.1.7` }).run).toBe(RUN);
  expect(runOptions({ 'last-event-id': '7' }).run).toBeUndefined();
});

it.each<readonly [string, string, string]>([
  ['holdfast-events', 'all', "Invalid value for 'Holdfast-Events': it must be none, chunks, comments."],
  ['holdfast-tool-calls', 'all', "Invalid value for 'Holdfast-Tool-Calls': it must be held, live."],
  ['holdfast-resume', 'yes', "Invalid value for 'Holdfast-Resume': it must be 1."],
  ['holdfast-thread', 't'.repeat(257), "Invalid value for 'Holdfast-Thread'"],
  ['holdfast-task', 't'.repeat(257), "Invalid value for 'Holdfast-Task': it must be at most 256 characters."],
  [
    'holdfast-task-session',
    's',
    "Invalid value for 'Holdfast-Task-Session': it must be beside Holdfast-Task.",
  ],
  ...['0', '-1', '1.5', 'soon', '2147483648'].map(
    (value) =>
      [
        'holdfast-deadline-ms',
        value,
        "Invalid value for 'Holdfast-Deadline-Ms': it must be a number of milliseconds, from 1 to 2147483647.",
      ] as const,
  ),
  ['holdfast-run-id', 'run_short', "This run doesn't exist"],
])('%s: %s is refused', (name, value, message) => {
  expect(() => runOptions({ [name]: value })).toThrow(message);
});

it.each<readonly [string, Record<string, string>, boolean]>([
  ['its own name', { originator: 'codex_exec' }, true],
  ['its editor extension', { originator: 'codex_vscode' }, true],
  ['its user agent alone', { 'user-agent': 'codex_cli_rs/0.169.0 (Debian 12.0.0; x86_64)' }, true],
  ['its user agent behind an originator of its own', { originator: 'ci', 'user-agent': 'codex-tui/1' }, true],
  ['nothing', {}, false],
  ['another client', { originator: 'opencode', 'user-agent': 'codexample/1' }, false],
  ['a client that speaks of it', { 'user-agent': 'proxy (for codex_exec)' }, false],
])('Codex is recognised by %s, unless profiles are off', (_, headers, isKnown) => {
  const profile = (client_profiles: boolean) =>
    profileOf(headers, { delivery: { client_profiles, keepalive_ms: 15_000, tool_calls: 'held' } });
  expect(profile(true)).toEqual(isKnown ? { failsWhenFull: true } : {});
  expect(profile(false)).toEqual({});
});

it.each([
  [{ 'holdfast-thread': 'T1', 'x-claude-code-session-id': 'S1' }, { conversation: 'conv_1' }, 'T1'],
  [{ 'x-claude-code-session-id': 'S1', 'x-claude-code-agent-id': 'A1' }, {}, 'S1/A1'],
  [{ 'holdfast-thread': '' }, { conversation: { id: 'conv_1' } }, 'conv_1'],
  [{}, { conversation: 'conv_1', metadata: { session_id: 'S1' } }, 'conv_1'],
  [{}, { metadata: { session_id: 'S1' } }, 'S1'],
  [{}, { prompt_cache_key: 'K1', user: 'ann@example.com', conversation: { id: 7 } }, undefined],
])('a request with %j and %j belongs to the conversation %s', (headers, fields, conversation) => {
  expect(conversationOf(headers, fields).conversation).toBe(conversation);
});
