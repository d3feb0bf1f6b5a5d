import type { Answer, Call } from './answer.ts';

/** What an application has in its hands that shows what its SDK gives it. */
export interface Shown {
  readonly text: string;
  /** `arguments` as far as they have come. */
  readonly calls: readonly Call[];
}

/** How the answer ended for the application. */
export type End =
  /** Without an error. `finish` is the reason in the words of chat completions; `undefined` if none came. */
  | { readonly kind: 'completed'; readonly finish: string | undefined }
  /** The SDK raised an error, or the answer says that it failed. */
  | { readonly kind: 'error'; readonly status?: number | undefined; readonly name: string }
  /** Nothing more was shown for `hang_ms`. */
  | { readonly kind: 'hang' }
  /** Not a byte came for `idle_ms`. */
  | { readonly kind: 'idle' };

export const VERDICTS = {
  exact: 'the whole answer, once, with its proper end',
  settled_calls_only:
    'a proper end with whole tool calls, fewer than the model made; the next turn makes up for them',
  honest_error: 'an error; what was shown before it is right',
  unsupported: 'the gateway has no such endpoint',
  silent_truncation: 'a part of the answer, and no error',
  wrong_end: 'the whole answer, but its end is missing or gives the wrong reason',
  lost_text: 'text is missing in the middle',
  altered_text: 'text that the model never said',
  duplicate: 'text or a tool call twice',
  broken_tool_call: 'a tool call whose arguments are not those of the model',
  hang: 'nothing more, and no error',
  idle_timeout: 'silent for longer than clients or load balancers wait, while the provider was well',
} as const;

export type Verdict = keyof typeof VERDICTS;

/** An application that gets one of these acts on an answer that is right, or knows that it has none. */
const ACCEPTABLE: ReadonlySet<Verdict> = new Set([
  'exact',
  'settled_calls_only',
  'honest_error',
  'unsupported',
]);

export const isAcceptable = (verdict: Verdict): boolean => ACCEPTABLE.has(verdict);

/** Reasons that tell an application that the answer is not whole. */
const INCOMPLETE: ReadonlySet<string | undefined> = new Set(['length', 'content_filter', 'error']);
const NO_SUCH_ENDPOINT: ReadonlySet<number | undefined> = new Set([404, 405, 501]);

/** `requests`: how many the provider got. What was shown and is wrong weighs more than how it ended. */
export function judge(answer: Answer, shown: Shown, end: End, requests: number): Verdict {
  const damage = textDamage(answer.text, shown.text) ?? callDamage(answer.calls, shown.calls);
  if (damage) return damage;
  switch (end.kind) {
    case 'hang':
      return 'hang';
    case 'idle':
      return 'idle_timeout';
    case 'error':
      return requests === 0 && NO_SUCH_ENDPOINT.has(end.status) ? 'unsupported' : 'honest_error';
    case 'completed':
      return completed(answer, shown, end.finish);
  }
}

function completed(answer: Answer, shown: Shown, finish: string | undefined): Verdict {
  if (INCOMPLETE.has(finish)) return 'honest_error';
  if (shown.calls.some(({ arguments: json }) => !isJson(json))) return 'broken_tool_call';
  if (shown.text !== answer.text) return 'silent_truncation';
  const proper = finish === (answer.calls.length > 0 ? 'tool_calls' : 'stop');
  if (shown.calls.length === answer.calls.length) return proper ? 'exact' : 'wrong_end';
  return shown.calls.length > 0 && proper ? 'settled_calls_only' : 'silent_truncation';
}

/** `undefined` for what the model said so far, and for all of it. */
function textDamage(whole: string, shown: string): Verdict | undefined {
  if (whole.startsWith(shown)) return undefined;
  let alike = 0;
  while (alike < shown.length && shown[alike] === whole[alike]) alike++;
  // What follows may begin alike by chance, so every place where the seam may be is tried, the latest first.
  for (let seam = alike; seam >= 0; seam--) {
    const from = placeOf(whole, shown.slice(seam), seam);
    if (from !== undefined) return from < seam ? 'duplicate' : 'lost_text';
  }
  return repeats(whole, shown) ? 'duplicate' : 'altered_text';
}

/** Where in the whole text the rest is from, with a repetition first. */
function placeOf(whole: string, rest: string, seam: number): number | undefined {
  const repeated = whole.lastIndexOf(rest, seam - 1);
  if (seam > 0 && repeated !== -1) return repeated;
  const later = whole.indexOf(rest, seam);
  return later === -1 ? undefined : later;
}

/** More than two tellings, or a word of the gateway between them. */
const repeats = (whole: string, shown: string): boolean =>
  shown.length > whole.length && shown.indexOf(whole.slice(0, OPENING_CHARACTERS), 1) !== -1;

const OPENING_CHARACTERS = 40;

function callDamage(made: readonly Call[], shown: readonly Call[]): Verdict | undefined {
  for (const [at, call] of shown.entries()) {
    const right = made[at];
    if (right && isSame(right, call)) continue;
    if (shown.slice(0, at).some((earlier) => isSame(earlier, call))) return 'duplicate';
    const isBegun = right?.name === call.name && right.arguments.startsWith(call.arguments);
    // Only the last one may still be under way.
    if (!isBegun || at !== shown.length - 1) return 'broken_tool_call';
  }
  return undefined;
}

const isSame = (one: Call, other: Call): boolean =>
  one.name === other.name &&
  isJson(other.arguments) &&
  canonical(one.arguments) === canonical(other.arguments);

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Spaces and the order of the keys are of no concern to a tool. */
function canonical(json: string): string {
  const value: unknown = JSON.parse(json);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(value);
  return JSON.stringify(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
