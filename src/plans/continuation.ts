import { anchorOf } from './seam/anchor.ts';

/** Covers the nudge and the framing of a message. */
const MARGIN_TOKENS_MIN = 256;
/** Allows for estimates that are too low by half, at four characters per token. */
const CHARACTERS_PER_MARGIN_TOKEN = 8;

/**
 * How many tokens to subtract from the output limit, because some providers refuse a prompt whose limit doesn't fit the
 * context. The limit is already reduced by the delivered text, which is only estimated, but not by the text that asks
 * for the rest.
 */
export const marginTokens = (added_characters: number): number =>
  MARGIN_TOKENS_MIN + Math.ceil(added_characters / CHARACTERS_PER_MARGIN_TOKEN);

/**
 * The share of `tokens` that falls on the anchor at the end of `delivered`; `characters` is the length of the whole
 * answer. A model that repeats the anchor spends these tokens again, so they don't count against the client.
 */
export function anchorTokens(delivered: string, characters: number, tokens: number): number {
  return characters === 0 ? 0 : Math.ceil((anchorOf(delivered).length / characters) * tokens);
}

interface NudgeFacts {
  readonly delivered: string;
  readonly hasTools: boolean;
  /** Names of the calls that were cut and must be made again. */
  readonly cutTools: readonly string[];
  /** The model ignored the first wording. */
  readonly insists: boolean;
}

/**
 * The user turn after the partial answer. It speaks as the user, because models take a "transport notice" for an
 * injected instruction. It asks for the last words again, because a model that is merely asked to continue loses the
 * space at the boundary two times out of three. The seam removes the repeated words.
 */
export function nudgeText({ delivered, hasTools, cutTools, insists }: NudgeFacts): string {
  const anchor = JSON.stringify(anchorOf(delivered));
  const sentences = [
    'My connection dropped and your answer was cut off.',
    insists
      ? `Do not begin it again. The first characters of your reply must be its last words, letter by letter: ${anchor}. Continue right behind them, in the middle of a sentence or word if that is where they end.`
      : `Repeat its last words exactly, ${anchor}, and go straight on from there.`,
    'Write nothing else: no preamble, no apology, same language, same formatting.',
  ];
  if (anchor.includes('\\n')) sentences.push('Where the words have \\n, write a line break.');
  if (cutTools.length > 0) sentences.push(askedAgain(quoted(cutTools)));
  else if (hasTools) sentences.push('If you were about to call a tool, call it now.');
  return sentences.join(' ');
}

/**
 * Like {@link nudgeText}, for an answer in which the provider ran the tools in `ran`; `delivered` is the text after the
 * last of them. The turn states that their results are above, because a model that takes the interruption for a tool
 * failure runs the tool again.
 */
export function nudgeAfterTools(ran: readonly string[], facts: NudgeFacts): string {
  if (ran.length === 0) return nudgeText(facts);
  const { delivered, cutTools } = facts;
  const names = quotedOnce(ran);
  const done = `What ${names} returned is in your answer above: do not run it again.`;
  if (delivered !== '') return `${nudgeText({ ...facts, hasTools: false })} ${done}`;
  return [
    `My connection dropped and your answer was cut off after ${names} had run.`,
    done,
    'Go straight on with your answer from there. Write nothing else: no preamble, no apology, same language, same formatting.',
    ...(cutTools.length > 0 ? [askedAgain(quotedOnce(cutTools))] : []),
  ].join(' ');
}

const askedAgain = (names: string): string =>
  `Your call to ${names} was cut off and did not run: make it again, in full.`;

const quoted = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ');

const quotedOnce = (names: readonly string[]): string => quoted([...new Set(names)]);
