import { anchorOf } from './seam/anchor.ts';

/** The words of a nudge, and what goes around a message. */
const MARGIN_TOKENS_MIN = 256;
/** How far tokens may be off where they are estimated by characters: there may be half as many again. */
const CHARACTERS_PER_MARGIN_TOKEN = 8;

/**
 * How much less may be asked for, where some providers refuse a prompt together with a limit that would not fit: the
 * limit is reduced by what was delivered, which is only estimated, and not by what else is said to ask for the rest.
 */
export const marginTokens = (added_characters: number): number =>
  MARGIN_TOKENS_MIN + Math.ceil(added_characters / CHARACTERS_PER_MARGIN_TOKEN);

/**
 * How many of the `tokens` of an answer of so many characters the anchor at the end of `delivered` has. A model that repeats
 * it spends them again, and none of them are the client's.
 */
export function anchorTokens(delivered: string, characters: number, tokens: number): number {
  return characters === 0 ? 0 : Math.ceil((anchorOf(delivered).length / characters) * tokens);
}

interface NudgeFacts {
  readonly delivered: string;
  readonly hasTools: boolean;
  /** Names of the calls that were cut and are to be made again. */
  readonly cutTools: readonly string[];
  /** The first wording was not followed. */
  readonly insists: boolean;
}

/**
 * The user turn that follows the partial answer. Spoken as the user, because models take a "transport notice"
 * for an injected instruction, and asking for the last words again, because a model told merely to continue
 * loses the space at the boundary two times out of three. The seam removes the repeated words.
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
 * The same where the provider ran tools for the answer, of the names `ran`: `delivered` is the text after the last of them.
 * Their results come before this turn, and it says so: a model that takes the interruption for a failure of the tool runs
 * it again.
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
