import type { DialectName } from '../../src/config/dialect-names.ts';
import { type ChunkDelta, deltasOf } from './deltas.ts';
import type { Utterance } from './limits.ts';
import type { Asked, Continuation, Part, Plan } from './script.ts';
import { type Situation, scriptReasoning, scriptText } from './situation.ts';

const TAIL = 40;
/** The length in characters from which a prefix is echoed in two deltas; a shorter one takes one delta. */
const ECHO_IN_TWO = 12;
const WORD_END = /[\p{L}\p{N}_]+$/u;
const WORD_START = /^[\p{L}\p{N}_]/u;

const OBEDIENT_TO_NUDGES: ReadonlySet<Continuation | undefined> = new Set([
  'obedient',
  'echoes_prefix',
  'rejects_prefill',
  'ignores_prefill',
]);
/** Dialects whose providers continue a prefix exactly. */
const EXACT: ReadonlySet<unknown> = new Set([
  'vllm',
  'llamacpp',
  'sglang',
  'deepseek',
  'kimi',
  'tgi',
  'groq',
  'gemini',
] satisfies DialectName[]);

/** How the provider is known to treat a prefix; `undefined` leaves it to the model. */
function prefilledBy({ prefilled, prefill }: Plan): Plan['prefilled'] {
  if (prefilled) return prefilled;
  if (prefill === 'mistral') return 'echo';
  return EXACT.has(prefill) ? 'exact' : undefined;
}

/** What the model says in this situation, before the request's limits apply. */
export function utterance(plan: Plan, situation: Situation): Utterance {
  if (situation.kind === 'original') return spoken(plan, plan.parts);
  const thought = thoughtSoFar(plan, situation);
  if (thought !== '') return spoken(plan, afterThought(plan.parts, thought.length));
  if (!goesOn(plan, situation)) return spoken(plan, plan.parts);
  const { prefix } = situation;
  const says = plan.says?.[situation.kind];
  if (says) return spoken(plan, [{ text: says(askedIn(plan, situation)) }]);
  const rest = remainder(plan.parts, prefix.length);
  const continued =
    situation.kind === 'nudge' && OBEDIENT_TO_NUDGES.has(plan.continuation)
      ? spoken(plan, joined([{ text: situation.anchor }, ...rest]))
      : continuation(plan, situation.kind === 'prefill', prefix, rest);
  const thoughts = plan.rethinks
    ? plan.parts.filter((part) => 'reasoning' in part && !rest.includes(part))
    : [];
  return { ...continued, deltas: [...deltasOf(thoughts, plan), ...continued.deltas] };
}

function askedIn(plan: Plan, situation: Exclude<Situation, { kind: 'original' }>): Asked {
  const anchor = situation.kind === 'nudge' ? situation.anchor : '';
  return { whole: scriptText(plan), sent: situation.prefix, anchor };
}

/** The reasoning that a prefill without text continues, if its provider accepts any. */
function thoughtSoFar(plan: Plan, situation: Exclude<Situation, { kind: 'original' }>): string {
  const { kind, prefix } = situation;
  const { reasoning = '' } = kind === 'prefill' ? situation : {};
  const isContinued = (plan.thinksOn ?? plan.prefill === 'deepseek') && kind === 'prefill' && prefix === '';
  const isBegunAnew = plan.continuation === 'restarts' || plan.continuation === 'ignores_prefill';
  return isContinued && !isBegunAnew && scriptReasoning(plan).startsWith(reasoning) ? reasoning : '';
}

/** The parts after the first `length` characters of reasoning. */
function afterThought(parts: readonly Part[], length: number): Part[] {
  let thought = length;
  return parts.flatMap((part): Part[] => {
    if (!('reasoning' in part)) return [part];
    const reasoning = part.reasoning.slice(thought);
    thought = Math.max(0, thought - part.reasoning.length);
    return reasoning === '' ? [] : [{ ...part, reasoning }];
  });
}

/** Whether the model continues the prefix. It starts over if asked to continue something it never said. */
function goesOn(plan: Plan, { kind, prefix }: Exclude<Situation, { kind: 'original' }>): boolean {
  if (prefix === '' || !scriptText(plan).startsWith(prefix)) return false;
  if (kind === 'prefill' && prefilledBy(plan)) return true;
  if (plan.continuation === 'ignores_prefill') return kind === 'nudge';
  return plan.continuation !== 'restarts';
}

function continuation(plan: Plan, prefilled: boolean, prefix: string, rest: readonly Part[]): Utterance {
  const say = (text: string) => spoken(plan, joined([{ text }, ...rest]));
  const known = prefilled ? prefilledBy(plan) : undefined;
  if (known === 'echo') return echoed(plan, prefix, rest);
  if (known === 'exact' && plan.continuation !== 'prose_instead_of_tool') return say('');
  switch (plan.continuation) {
    case 'repeats_tail':
      return say(prefix.slice(-TAIL));
    case 'preamble':
      return say(prefilled ? '' : 'Sure, here is the rest:\n');
    case 'loses_whitespace':
      return spoken(plan, leftTrimmed(rest));
    case 'echoes_prefix':
      return prefilled ? echoed(plan, prefix, rest) : say('');
    case 'repeats_word':
      return say(brokenWord(prefix, rest));
    case 'prose_instead_of_tool':
      return prose(plan, rest);
    default:
      return say('');
  }
}

function spoken(plan: Plan, parts: readonly Part[]): Utterance {
  const finish = plan.finish ?? (parts.some(isTool) ? 'tool_calls' : 'stop');
  return { deltas: deltasOf(parts, plan), finish };
}

const isTool = (part: Part): boolean => 'tool' in part || 'tools' in part;

/** The parts after the first `length` characters of text. Other parts count as said if text after them was. */
export function remainder(parts: readonly Part[], length: number): Part[] {
  let said = length;
  return parts.flatMap((part): Part[] => {
    if (!('text' in part)) return said > 0 ? [] : [part];
    const text = part.text.slice(said);
    said = Math.max(0, said - part.text.length);
    return text === '' ? [] : [{ text }];
  });
}

/** Merges neighbouring texts, so that the split into pieces doesn't reveal the joints. */
function joined(parts: readonly Part[]): Part[] {
  const all: Part[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if ('text' in part && last && 'text' in last) all[all.length - 1] = { text: last.text + part.text };
    else all.push(part);
  }
  return all;
}

function leftTrimmed([first, ...others]: readonly Part[]): Part[] {
  if (!first) return [];
  return 'text' in first ? [{ text: first.text.trimStart() }, ...others] : [first, ...others];
}

function brokenWord(prefix: string, rest: readonly Part[]): string {
  const [first] = rest;
  if (!first || !('text' in first) || !WORD_START.test(first.text)) return '';
  return WORD_END.exec(prefix)?.[0] ?? '';
}

function echoed(plan: Plan, prefix: string, rest: readonly Part[]): Utterance {
  const echo = prefix.trimEnd();
  const half = echo.lastIndexOf(' ', echo.length >> 1);
  const deltas: ChunkDelta[] =
    echo.length < ECHO_IN_TWO || half <= 0
      ? [{ content: echo }]
      : [{ content: echo.slice(0, half) }, { content: echo.slice(half) }];
  const onward = spoken(plan, joined([{ text: prefix.slice(echo.length) }, ...rest]));
  return { finish: onward.finish, deltas: [...deltas, ...onward.deltas], echoed: deltas.length };
}

function prose(plan: Plan, rest: readonly Part[]): Utterance {
  if (!rest.some(isTool)) return spoken(plan, rest);
  const parts = [...rest.filter((part) => !isTool(part)), { text: ' I would now look that up with a tool.' }];
  return { deltas: deltasOf(joined(parts), plan), finish: 'stop' };
}
