import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { answerOf, cutIn, stepsOf } from '../../packages/conformance/src/answer.ts';
import { allCases, chosen } from '../../packages/conformance/src/cases.ts';
import { HELP, optionsOf } from '../../packages/conformance/src/options.ts';
import { randomOf } from '../../packages/conformance/src/random.ts';
import { badge } from '../../packages/conformance/src/report/badge.ts';
import { jsonReport } from '../../packages/conformance/src/report/json.ts';
import { markdownReport } from '../../packages/conformance/src/report/markdown.ts';
import type { Result } from '../../packages/conformance/src/run.ts';

const EVERYTHING = { http2: true, kill: true };

describe('the cases', () => {
  test('have ids of their own, on all wires alike', () => {
    const ids = allCases(EVERYTHING).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const of = (wire: string) =>
      ids.flatMap((id) => (id.startsWith(`${wire}/`) ? [id.slice(wire.length)] : []));
    expect(of('messages')).toEqual(of('chat'));
    expect(of('responses')).toEqual(of('chat'));
  });

  test('need HTTP/2 for GOAWAY, and a command for the death of a replica', () => {
    const troubles = new Set(allCases({ http2: false, kill: false }).map(({ trouble }) => trouble));
    expect([troubles.has('goaway'), troubles.has('replica_death')]).toEqual([false, false]);
    const all = new Set(allCases(EVERYTHING).map(({ trouble }) => trouble));
    expect([all.has('goaway'), all.has('replica_death')]).toEqual([true, true]);
  });

  test('are chosen by words of their ids', () => {
    const cases = chosen(allCases(EVERYTHING), ['chat/streaming/text/reset', 'goaway']);
    expect(cases.filter(({ trouble }) => trouble === 'goaway')).toHaveLength(12);
    expect(cases).toHaveLength(14);
  });

  test('have answers that a seed determines, and that differ', () => {
    const cases = allCases(EVERYTHING);
    const answers = (seed: number) => cases.map((each) => JSON.stringify(answerOf(each, seed)));
    expect(answers(1)).toEqual(answers(1));
    expect(answers(2)).not.toEqual(answers(1));
    expect(new Set(answers(1)).size).toBe(cases.length);
  });

  test('break where their state says', () => {
    for (const each of allCases(EVERYTHING)) {
      const answer = answerOf(each, 3);
      const steps = stepsOf(answer, 0, randomOf(3, each.id));
      const before = steps.slice(0, cutIn(steps, each.state));
      const json = (call: number) =>
        before.map((step) => (step.kind === 'arguments' && step.call === call ? step.text : '')).join('');
      const ended = before.filter(({ kind }) => kind === 'call_end').length;
      const isPart = (part: string, whole = '') => part !== '' && part !== whole && whole.startsWith(part);
      const said = before.map((step) => (step.kind === 'text' ? step.text : '')).join('');
      const [first, second] = answer.calls.map((call) => call.arguments);
      const right = {
        text: () => isPart(said, answer.text),
        in_call: () => isPart(json(0), first) && ended === 0,
        settled_call: () => ended === answer.calls.length && json(0) === first,
        second_call: () => ended === 1 && isPart(json(1), second),
      };
      expect(right[each.state](), each.id).toBe(true);
    }
  });
});

describe('the command line', () => {
  test.each([
    [[], '--base-url: give the URL of the gateway'],
    [['--base-url', 'localhost'], '--base-url localhost: give a URL that begins with http:// or https://'],
    [['--base-url', 'http://h', '--seed', '-1'], "Option '--seed' argument is ambiguous"],
    [['--base-url', 'http://h', '--concurrency', '0'], '--concurrency 0: give a whole number from 1 to 256'],
    [['--base-url', 'http://h', '--idle-ms', '90000'], '--idle-ms 90000: give less than --silence-ms'],
    [['--base-url', 'http://h', '--prefill', 'maybe'], '--prefill maybe: give "continues" or "refuses"'],
    [
      ['--base-url', 'http://h', '--second-base-url', 'http://i'],
      '--second-base-url: give --kill-command too',
    ],
    [['--base-url', 'http://h', '--header', 'x'], '--header x: give it as "name: value"'],
    [['--base-url', 'http://h', '--tls-cert', 'x'], '--tls-cert: give --tls-key too'],
    [['--base-url', 'http://h', '--tls-cert', '/x', '--tls-key', '/x'], 'give files that can be read'],
    [['--wrong'], "Unknown option '--wrong'"],
  ])('refuses %j with what to do', (words, message) => {
    expect(() => optionsOf(words)).toThrow(message);
  });

  test('takes a base URL with and without /v1, and headers for one wire', () => {
    const words = ['--header', 'a: 1', '--messages-header', 'b: x: y'];
    const options = optionsOf(['--base-url', 'http://127.0.0.1:1/v1/', ...words]);
    expect(options).toMatchObject({
      base_url: 'http://127.0.0.1:1',
      headers: { chat: { a: '1' }, messages: { a: '1', b: 'x: y' }, responses: { a: '1' } },
    });
    expect(optionsOf(['--help'])).toBeUndefined();
    expect(HELP).toContain('--base-url');
  });
});

test('the suite imports its own files, Node and the SDKs, and nothing of what it tests', () => {
  const root = fileURLToPath(new URL('../../packages/conformance/src', import.meta.url));
  const imported = globSync('**/*.ts', { cwd: root }).flatMap((path) => {
    const names = readFileSync(join(root, path), 'utf8').matchAll(/ from '([^']+)'/g);
    return [...names].map(([, name = '']) => (name.startsWith('.') ? join(dirname(path), name) : name));
  });
  const foreign = imported.filter((name) => name.startsWith('..') || !/^node:|\.ts$/.test(name));
  expect([...new Set(foreign)].sort((one, other) => one.localeCompare(other))).toEqual([
    '@anthropic-ai/sdk',
    'openai',
  ]);
});

test('the SDKs of the package are the ones that it is tested with', () => {
  const read = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
  const own = read('../../packages/conformance/package.json');
  const { devDependencies } = read('../../package.json');
  for (const versions of [own.dependencies, own.devDependencies])
    for (const [name, version] of Object.entries(versions)) expect(devDependencies[name], name).toBe(version);
});

describe('the reports', () => {
  const [first, second] = allCases({ http2: false, kill: false });
  const seen = { shown: { text: 'a', calls: [] }, end: { kind: 'completed', finish: 'stop' } } as const;
  const results = [
    { asked: first, verdict: 'exact', requests: 2, seen },
    { asked: second, verdict: 'hang', requests: 1, seen },
  ] as Result[];
  const conditions = { suite: 's 1', seed: 1, hang_ms: 2, idle_ms: 3, silence_ms: 4, prefill: 'continues' };

  test('name each case, its verdict and the conditions', () => {
    const report = JSON.parse(jsonReport(conditions, results));
    expect(report).toMatchObject({ ...conditions, cases: 2, failures: 1, verdicts: { exact: 1, hang: 1 } });
    expect(report.results[0]).toMatchObject({ id: first?.id, verdict: 'exact', requests: 2 });
    const markdown = markdownReport(conditions, results);
    expect(markdown).toContain('2 cases, 1 failures. `suite` s 1, `seed` 1, `hang_ms` 2');
    expect(markdown).toContain(`| ${second?.id} | hang | 1 |`);
  });

  test('have a badge that says how many failed', () => {
    expect(badge(results)).toContain('<title>stream conformance: 1 of 2 exact, 1 failed</title>');
    expect(badge(results.slice(0, 1))).toContain('<title>stream conformance: 1 of 1 exact</title>');
  });
});
