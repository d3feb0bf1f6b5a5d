import { randomNumbers } from './random.ts';

const ONSETS = [
  'b',
  'br',
  'd',
  'f',
  'gl',
  'h',
  'k',
  'l',
  'm',
  'n',
  'p',
  'pl',
  'r',
  's',
  'st',
  't',
  'tr',
  'v',
  'w',
  'z',
];
const VOWELS = ['a', 'e', 'i', 'o', 'u', 'ai', 'ee', 'ou'];
const CODAS = ['', '', 'l', 'n', 'nd', 'r', 's', 'st', 't', 'x'];
/**
 * Text that breaks careless seams: line ends, spaces at the end of a token, quotes, and characters of two to four
 * bytes.
 */
const AWKWARD = [
  '.\n\n',
  ',',
  ': ',
  '  ',
  '"',
  '\\',
  ' é',
  ' 海草',
  ' 🌊',
  '\n- ',
  '\n```ts\n',
  '\t',
  ' 0',
  '\r\n',
];

/** The tokens of one answer. The same identity always gives the same answer. */
export function answerTokens(identity: number): string[] {
  const random = randomNumbers(identity);
  const pick = (choices: readonly string[]) => choices[Math.floor(random() * choices.length)] ?? '';
  const syllable = () => pick(ONSETS) + pick(VOWELS) + pick(CODAS);
  const length = 50 + Math.floor(random() * 200);
  const tokens = ['Answer', ` ${identity}`, ':'];
  while (tokens.length < length) {
    tokens.push(random() < 0.15 ? pick(AWKWARD) : ` ${syllable()}${syllable()}`);
  }
  return tokens;
}
