import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { charactersOf, cutsOf } from './cuts.ts';
import type { Cut } from './cutter.ts';
import { LlamaDeployment } from './deployment.ts';
import { TEXTS, type TextName } from './texts.ts';
import type { WireName } from './wires.ts';

const NAMES = Object.keys(TEXTS) as TextName[];
const ON_COMPLETIONS: readonly TextName[] = ['python', 'scripts'];
/** The approximate length of a `data:` line with one character. */
const EVENT_BYTES = 220;

describe.skipIf(inject('llamaServer') === '')('an answer that llama-server keeps', () => {
  let deployment: LlamaDeployment;

  beforeAll(async () => {
    deployment = await LlamaDeployment.start(inject('llamaServer'));
  });
  afterAll(() => deployment.close());

  const cases = (wire: WireName, names: readonly TextName[]) =>
    names.flatMap((name) =>
      cutsOf(TEXTS[name])
        .filter((_, index) => index % 3 === 0)
        .map((cut) => ({ wire, name, cut })),
    );

  const check = async (wire: WireName, name: TextName, cuts: readonly Cut[], manner: 'close' | 'reset') => {
    const question = { model: 'resume', wire, text: TEXTS[name] } as const;
    const expected = await deployment.uncut(question);
    const { answer, requests } = await deployment.ask(question, cuts, manner);
    expect(answer).toEqual(expected);
    expect(answer).toMatchObject({ text: TEXTS[name], finish: ['stop'], done: true });
    // The prompt is paid for once: the rest comes from the kept answer.
    expect(requests.map(({ method }) => method)).toEqual(['POST', ...cuts.map(() => 'GET')]);
  };

  test.each([...cases('chat', NAMES), ...cases('completions', ON_COMPLETIONS)])(
    'is the uncut one on $wire: $name, cut after $cut characters',
    ({ wire, name, cut }) => check(wire, name, [{ events: cut }], 'close'),
  );

  test.each(NAMES)('is the uncut one: %s, cut in the middle of events, three times', (name) => {
    const bytes = Math.floor((charactersOf(TEXTS[name]).length * EVENT_BYTES) / 5);
    return check('chat', name, [{ bytes }, { bytes: bytes + 31 }, { bytes: bytes - 17 }], 'close');
  });

  test.each(NAMES)('is the uncut one: %s, reset in the middle', (name) =>
    check('chat', name, [{ events: Math.floor(charactersOf(TEXTS[name]).length / 2) }], 'reset'),
  );

  test.each(NAMES)('is the uncut one: %s, cut when only its finish and its usage are missing', (name) =>
    check('chat', name, [{ events: charactersOf(TEXTS[name]).length }], 'close'),
  );
});
