import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { StreamedAnswer } from './answer.ts';
import { charactersOf, cutsOf } from './cuts.ts';
import { LlamaDeployment, type ModelName } from './deployment.ts';
import { TEXTS, type TextName } from './texts.ts';
import { WIRES, type WireName } from './wires.ts';

const NAMES = Object.keys(TEXTS) as TextName[];
const ON_COMPLETIONS: readonly TextName[] = ['python', 'spaces', 'scripts'];

/** Only the server's report says how many tokens a multi-byte character takes, so some counts are estimates. */
const USAGE_ERROR_MAX = 0.02;

function checkUsage(text: string, { usage }: StreamedAnswer, { usage: expected }: StreamedAnswer): void {
  if (Buffer.byteLength(text) === charactersOf(text).length) expect(usage).toEqual(expected);
  else expect(Math.abs(Number(usage.total) / Number(expected.total) - 1)).toBeLessThan(USAGE_ERROR_MAX);
}

/** Holdfast has to send the prefix exactly as delivered, white space included, and deliver only the rest. */
describe.skipIf(inject('llamaServer') === '')('an answer of a llama-server that keeps none', () => {
  let deployment: LlamaDeployment;

  beforeAll(async () => {
    deployment = await LlamaDeployment.start(inject('llamaServer'));
  });
  afterAll(() => deployment.close());

  const check = async (model: ModelName, wire: WireName, name: TextName, cuts: readonly number[]) => {
    const text = TEXTS[name];
    const question = { model, wire, text } as const;
    const expected = await deployment.uncut(question);
    const { answer, requests } = await deployment.ask(
      question,
      cuts.map((events) => ({ events })),
    );
    let delivered = 0;
    const prefixes = cuts.map((events) => {
      delivered += events;
      return charactersOf(text).slice(0, delivered).join('');
    });
    const sent = requests.filter(({ method }) => method === 'POST').map(WIRES[wire].prefixOf);
    expect({ text: answer.text, sent: sent.slice(1) }).toEqual({ text, sent: prefixes });
    expect(answer).toMatchObject({ calls: [], finish: ['stop'], done: true });
    checkUsage(text, answer, expected);
  };

  const cases = (wire: WireName, names: readonly TextName[]) =>
    names.flatMap((name) => cutsOf(TEXTS[name]).map((cut) => ({ wire, name, cut })));

  test.each([...cases('chat', NAMES), ...cases('completions', ON_COMPLETIONS)])(
    'is the uncut one on $wire: $name, cut after $cut characters',
    ({ wire, name, cut }) => check('prefill', wire, name, [cut]),
  );

  test.each(NAMES)('is the uncut one: %s, cut three times', (name) =>
    check('prefill', 'chat', name, [1, 14, 23]),
  );

  test.each(NAMES)('is the uncut one: %s, of which only the finish is missing', (name) =>
    check('prefill', 'chat', name, [charactersOf(TEXTS[name]).length]),
  );

  test.each(NAMES)('is the uncut one: %s, of a server that is recognised by what it sends', (name) =>
    check('unknown', 'chat', name, [30]),
  );
});
