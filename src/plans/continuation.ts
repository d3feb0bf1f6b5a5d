/**
 * How a continuation asks for the rest. `resume` comes back to the very answer, which its provider has gone on with.
 * `restart` re-issues the original because nothing is worth keeping (R4).
 */
export const MODES = ['resume', 'prefill', 'nudge', 'replay', 'restart'] as const;
export type Mode = (typeof MODES)[number];

export interface ModeFacts {
  readonly plan: 'R1' | 'R3';
  /** Whether the target continues a trailing assistant message; `undefined` while that is not known. */
  readonly prefill: boolean | undefined;
  readonly prefillWithTools: boolean;
  /** Length of the prefix. */
  readonly characters: number;
  readonly hasTools: boolean;
  /** Structured output, a forced tool: a model asked to "go on" starts such an answer anew. */
  readonly onlyReplay: boolean;
  /** Modes that already failed in this run. */
  readonly failed: ReadonlySet<Mode>;
}

/** From a shorter prefix it could not be told whether the model went on or began again. */
const PROBE_CHARACTERS = 16;

/** The first mode in order of preference that the request and the target allow, or `undefined` when none is left. */
export function chooseMode(facts: ModeFacts): Exclude<Mode, 'restart'> | undefined {
  const candidates: Exclude<Mode, 'restart'>[] = [];
  if (!facts.onlyReplay) {
    const worthTrying = facts.prefill ?? facts.characters >= PROBE_CHARACTERS;
    const prefillAllowed = worthTrying && (facts.prefillWithTools || !facts.hasTools);
    // Only a nudge can say which call was cut.
    if (facts.plan === 'R3') candidates.push('nudge');
    if (prefillAllowed) candidates.push('prefill');
    if (facts.plan === 'R1') candidates.push('nudge');
  }
  candidates.push('replay');
  return candidates.find((mode) => !facts.failed.has(mode));
}

/** The delivered text as a provider may be sent it, and what had to be left off its end. */
export interface Prefix {
  readonly sent: string;
  /** Whitespace, or half a surrogate pair: delivered to the client, but not to be sent. */
  readonly trimmed: string;
}

/**
 * Several providers refuse a prefix that ends in whitespace or drop it silently, and half a surrogate pair is
 * not text. Whatever is trimmed is taken off the head of the continuation again by the seam.
 */
export function prefixOf(delivered: string): Prefix {
  const last = delivered.charCodeAt(delivered.length - 1);
  const whole = last >= 0xd800 && last <= 0xdbff ? delivered.slice(0, -1) : delivered;
  const sent = whole.trimEnd();
  return { sent, trimmed: delivered.slice(sent.length) };
}

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

/** Long enough to be recognised beyond doubt, short enough that a model repeats it faithfully. */
const ANCHOR_CHARACTERS = 40;

/** The last words of the prefix, from a word's beginning if one begins early enough: not every script has spaces. */
export function anchorOf(prefix: string): string {
  if (prefix.length <= ANCHOR_CHARACTERS) return prefix.trimStart();
  const tail = prefix.slice(-ANCHOR_CHARACTERS);
  const firstSpace = tail.slice(0, ANCHOR_CHARACTERS / 2).search(/\s/);
  // Without its first half, the rest of a surrogate pair is not text.
  return firstSpace === -1 ? tail.replace(/^[\udc00-\udfff]/, '') : tail.slice(firstSpace).trimStart();
}

export interface NudgeFacts {
  readonly prefix: string;
  readonly hasTools: boolean;
  /** Names of the calls that were cut and are to be made again. */
  readonly cutTools: readonly string[];
}

/**
 * The user turn that follows the partial answer. Spoken as the user, because models take a "transport notice"
 * for an injected instruction, and asking for the last words again, because a model told merely to go on
 * loses the space at the boundary two times out of three. The seam removes the repeated words.
 */
export function nudgeText({ prefix, hasTools, cutTools }: NudgeFacts): string {
  const sentences = [
    'My connection dropped and your answer was cut off.',
    `Repeat its last words exactly, ${JSON.stringify(anchorOf(prefix))}, and go straight on from there.`,
    'Write nothing else: no preamble, no apology, same language, same formatting.',
  ];
  if (cutTools.length > 0) {
    const names = cutTools.map((name) => `\`${name}\``).join(', ');
    sentences.push(`Your call to ${names} was cut off and did not run: make it again, in full.`);
  } else if (hasTools) {
    sentences.push('If you were about to call a tool, call it now.');
  }
  return sentences.join(' ');
}
