import type { Case } from './cases.ts';
import { randomOf } from './random.ts';

export interface Call {
  readonly name: string;
  /** JSON. */
  readonly arguments: string;
}

/** What the model says, as a client that nothing happens to sees it. */
export interface Answer {
  readonly text: string;
  readonly calls: readonly Call[];
}

/** Repeated words, several scripts, characters outside of the basic plane, and line breaks: what answers are made of. */
const WORDS = [
  ...['kelp', 'grips', 'the', 'rock', 'the', 'rock', 'and', 'the', 'surge', 'passes', 'through', 'it'],
  ...['\n\n- ', 'naïve', 'Ås', '海藻', '🌊', '`a = a + 1`', '"quoted"', 'again', 'and', 'again'],
];

const TEXT_WORDS = 60;
const PREAMBLE_WORDS = 12;
const PIECE_CHARACTERS_MAX = 7;

export function answerOf({ id, state }: Case, seed: number): Answer {
  const random = randomOf(seed, id);
  const say = (words: number) =>
    // A word of its own at the end: an answer that ends in a line break would be trimmed on its way by some.
    `${Array.from({ length: words }, () => WORDS[Math.floor(random() * WORDS.length)]).join(' ')} end.`;
  if (state === 'text') return { text: say(TEXT_WORDS), calls: [] };
  const weather = { city: 'Ås', note: say(PREAMBLE_WORDS), days: 1 + Math.floor(random() * 9) };
  const letter = { to: 'crew@example.com', body: say(PREAMBLE_WORDS) };
  const calls = [{ name: 'look_up_weather', arguments: JSON.stringify(weather) }];
  if (state === 'second_call') calls.push({ name: 'send_letter', arguments: JSON.stringify(letter) });
  return { text: say(PREAMBLE_WORDS), calls };
}

/** The tools that each request offers: their names, and what their arguments look like. */
export const TOOLS: Readonly<Record<string, Record<string, unknown> & { type: 'object' }>> = {
  look_up_weather: {
    type: 'object',
    properties: { city: { type: 'string' }, note: { type: 'string' }, days: { type: 'integer' } },
    required: ['city', 'note', 'days'],
    additionalProperties: false,
  },
  send_letter: {
    type: 'object',
    properties: { to: { type: 'string' }, body: { type: 'string' } },
    required: ['to', 'body'],
    additionalProperties: false,
  },
};

/** A few characters each, never half of a surrogate pair. */
export function piecesOf(text: string, random: () => number): string[] {
  const characters = [...text];
  const pieces: string[] = [];
  for (let at = 0; at < characters.length; ) {
    const length = 1 + Math.floor(random() * PIECE_CHARACTERS_MAX);
    pieces.push(characters.slice(at, at + length).join(''));
    at += length;
  }
  return pieces;
}

/** One step of an answer. `call_end` is said by wires that say so. */
export type Step =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'call'; readonly call: number; readonly name: string }
  | { readonly kind: 'arguments'; readonly call: number; readonly text: string }
  | { readonly kind: 'call_end'; readonly call: number };

/** The steps of what follows the first `said` characters of the text. */
export function stepsOf({ text, calls }: Answer, said: number, random: () => number): readonly Step[] {
  const spoken = piecesOf(text.slice(said), random).map((piece): Step => ({ kind: 'text', text: piece }));
  const called = calls.flatMap(({ name, arguments: json }, call): Step[] => [
    { kind: 'call', call, name },
    ...piecesOf(json, random).map((piece): Step => ({ kind: 'arguments', call, text: piece })),
    { kind: 'call_end', call },
  ]);
  return [...spoken, ...called];
}

/** After how many steps the answer breaks: in the middle of what the state names, behind a call that is settled. */
export function cutIn(steps: readonly Step[], state: Case['state']): number {
  const middleOf = (fits: (step: Step) => boolean) => {
    const places = steps.flatMap((step, at) => (fits(step) ? [at] : []));
    return (places[Math.floor(places.length / 2)] ?? 0) + 1;
  };
  switch (state) {
    case 'text':
      return middleOf(({ kind }) => kind === 'text');
    case 'in_call':
      return middleOf((step) => step.kind === 'arguments' && step.call === 0);
    case 'settled_call':
      return steps.length;
    case 'second_call':
      return middleOf((step) => step.kind === 'arguments' && step.call === 1);
  }
}
