import { describe, expect, test } from 'vitest';
import {
  type CompletionRequest,
  checkCompletionRequest,
  completionFactsOf,
} from '../../../src/proxy/wires/chunks/completions-wire.ts';
import type { Plan } from '../../provider/script.ts';
import { type SimulationOptions, simulate } from '../../simulation/simulate.ts';

const TEXT = 'A holdfast grips the rock and lets the blades stream with the surge.';
const plan: Plan = { parts: [{ text: TEXT }] };
const cut: Plan = { ...plan, faults: [{ kind: 'reset', at: { event: 6 } }] };

const ask = (told: Plan, parameters: object = {}, options: SimulationOptions = {}) =>
  simulate(told, {
    ...options,
    wire: 'completions',
    request: { stream_options: { include_usage: true }, ...parameters },
  });

const factsWith = (fields: object) =>
  completionFactsOf({ model: 'm', stream: true, prompt: 'Once', ...fields } as CompletionRequest);

describe('a completion', () => {
  test('passes as the bytes that came while it is healthy', async () => {
    const { client, requests, outcome } = await ask(plan);
    expect(outcome).toBe('complete');
    const [first] = client.body.split('\n\n');
    expect(JSON.parse(first?.slice('data: '.length) ?? '')).toEqual({
      id: 'chatcmpl-1',
      object: 'text_completion',
      created: expect.any(Number),
      model: 'model',
      system_fingerprint: 'fp_script',
      choices: [{ text: expect.any(String), index: 0, logprobs: null, finish_reason: null }],
      usage: null,
    });
    expect(requests[0]?.url).toBe('http://provider.test/v1/completions');
  });

  test('continues from its prompt and what it has said', async () => {
    const { stream, requests, outcome } = await ask(cut, { max_tokens: 50 });
    expect(outcome).toBe('recovered');
    expect(stream).toMatchObject({ text: TEXT, finish: 'stop', done: true, violations: [] });
    const [first, second] = requests.map(({ body }) => body as unknown as CompletionRequest);
    expect(second).toMatchObject({ echo: false, max_tokens: 50 - 6 });
    expect(first).not.toHaveProperty('echo');
  });

  test.each(['mistral', 'vllm', 'openai'] as const)('in the same way at %s', async (dialect) => {
    const { stream, requests } = await ask(cut, {}, { dialect });
    expect(stream).toMatchObject({ text: TEXT, violations: [] });
    const [first, second] = requests.map(({ body }) => new Set(Object.keys(body)));
    expect(second).toEqual(first?.add('echo'));
  });

  test('is never nudged: what cannot be continued is replayed', async () => {
    const { stream, requests, outcome } = await ask(cut, { guided_regex: '[a-z]+' });
    expect(outcome).toBe('recovered');
    expect(stream.text).toBe(TEXT);
    expect(requests[1]?.body).toEqual(requests[0]?.body);
  });

  test.each([
    ['n', { n: 2 }],
    ['best_of', { best_of: 3 }],
    ['suffix', { suffix: 'The end.' }],
    ['echo', { echo: true }],
    ['logprobs', { logprobs: 0 }],
  ])('with %s is not joined: a typed error instead of a corrupt splice', async (_, parameters) => {
    const { stream, requests } = await ask(cut, parameters);
    expect(stream.error).toMatchObject({ code: 'not_recoverable' });
    expect(requests).toHaveLength(1);
    expect(TEXT.startsWith(stream.text)).toBe(true);
  });
});

describe('the facts of a request', () => {
  test('of the simplest one', () => {
    expect(factsWith({})).toEqual({
      schemas: new Map(),
      hasTools: false,
      choices: 1,
      spliceable: true,
      onlyReplay: false,
      expectsJson: false,
      stops: [],
      max_tokens: Number.POSITIVE_INFINITY,
      usageAsked: false,
      legacyFunctions: false,
      promptSize: expect.any(Function),
    });
  });

  test.each([
    ['two prompts', { prompt: ['a', 'b'] }, { choices: 2, spliceable: false }],
    ['two prompts of tokens', { prompt: [[1], [2]] }, { choices: 2, spliceable: false }],
    ['one prompt of tokens', { prompt: [1, 2, 3] }, { choices: 1, spliceable: false }],
    ['one prompt in a list', { prompt: ['a'] }, { choices: 1, spliceable: false }],
    ['no prompt', { prompt: undefined }, { choices: 1, spliceable: false }],
    ['a limit', { max_tokens: 5 }, { max_tokens: 5 }],
    ['stops', { stop: ['a', 'b'] }, { stops: ['a', 'b'] }],
    ['JSON', { response_format: { type: 'json_object' } }, { expectsJson: true, onlyReplay: true }],
    ['a grammar', { grammar: 'root ::= "a"' }, { expectsJson: false, onlyReplay: true }],
    ['usage', { stream_options: { include_usage: true } }, { usageAsked: true }],
  ])('%s', (_, fields, facts) => {
    expect(factsWith(fields)).toMatchObject(facts);
  });

  test.each([
    [{ model: 5 }, 'model'],
    [{ model: 'm', stop: [5] }, 'stop'],
    [{ model: 'm', stream_options: 'all' }, 'stream_options'],
  ])('are not asked of %j, which is refused', (fields, param) => {
    expect(() => checkCompletionRequest(fields)).toThrow(
      expect.objectContaining({ message: expect.stringContaining(`'${param}'`) }),
    );
  });
});
