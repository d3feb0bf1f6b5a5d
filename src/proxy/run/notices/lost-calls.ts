import { createHash } from 'node:crypto';
import type { Notes } from '../../../checkpoint/notes.ts';
import type { Owner, RunId } from '../../../checkpoint/store.ts';
import {
  comparableJson,
  normalisedArguments,
  type SettledCall,
  type ToolCall,
} from '../../../plans/tool-call.ts';
import type { AnsweredCall } from '../../wires/common/conversation.ts';

/** Keeps notes small: further calls of a turn are not noted. */
const DELIVERED_MAX = 64;
const LOST_MAX = 16;
const NAME_CHARACTERS_MAX = 64;
/** How many of a request's results are looked up. */
const ANSWERS_MAX = 16;

/** Calls that a run lost next to the ones it delivered. Stored once, under the run's id. */
export interface LostCallNote {
  readonly run: RunId;
  /** Names of cut calls. */
  readonly lost: readonly string[];
  /** Names of provider tools that were running, whose results are unknown. */
  readonly unknown: readonly string[];
  readonly delivered: readonly SettledCall[];
  /** The answer's ids, as known to the client and to the provider, on wires where requests may name them. */
  readonly answers: readonly string[];
}

/** Stored under the id of each delivered call, so that its result leads to the note. */
interface Pointer {
  readonly run: RunId;
  /** Digest of the call, because some providers reuse the same ids. */
  readonly digest: string;
  /** Digests of the answer's ids, for requests that name the answer but don't contain the call. */
  readonly answers?: readonly string[];
}

export const lostCallKey = (name: RunId | string) => ({ kind: 'lost_call', name }) as const;

/** `undefined` if no call was lost, or if no delivered call has an id whose result could trigger the notice. */
export function lostCallNote(
  run: RunId,
  delivered: readonly SettledCall[],
  lost: readonly Pick<ToolCall, 'name'>[],
  answers: readonly string[] = [],
  running: readonly Pick<ToolCall, 'name'>[] = [],
): LostCallNote | undefined {
  const named = delivered.filter(({ id }) => id !== '').slice(0, DELIVERED_MAX);
  if (named.length === 0 || lost.length + running.length === 0) return undefined;
  return { run, lost: namesOf(lost), unknown: namesOf(running), delivered: named, answers };
}

const namesOf = (calls: readonly Pick<ToolCall, 'name'>[]): readonly string[] =>
  calls.slice(0, LOST_MAX).map(({ name }) => name.slice(0, NAME_CHARACTERS_MAX));

export async function leaveLostCallNote(
  notes: Notes,
  owner: Owner,
  { run, lost, unknown, delivered, answers }: LostCallNote,
  ttl_ms: number,
): Promise<void> {
  // Written before the pointers: a pointer without a note means that the notice was already delivered.
  await notes.put(
    owner,
    lostCallKey(run),
    JSON.stringify(unknown.length > 0 ? { lost, unknown } : lost),
    ttl_ms,
  );
  const named = answers.length > 0 ? { answers: answers.map(shortDigest) } : {};
  const pointers = delivered.map((call) => {
    const pointer: Pointer = { run, digest: digestOf(call), ...named };
    return notes.put(owner, lostCallKey(call.id), JSON.stringify(pointer), ttl_ms);
  });
  await Promise.all(pointers);
}

/** The run that delivered one of these calls and lost another, if no notice about it was delivered yet. */
export async function runWithLostCall(
  notes: Notes,
  owner: Owner,
  answered: readonly AnsweredCall[],
): Promise<RunId | undefined> {
  const found = await Promise.all(
    answered.slice(0, ANSWERS_MAX).map(async (call) => {
      const value = await notes.get(owner, lostCallKey(call.id));
      const pointer = value === undefined ? undefined : (JSON.parse(value) as Pointer);
      return pointer && pointsTo(pointer, call) ? pointer.run : undefined;
    }),
  );
  return found.find((run) => run !== undefined);
}

/** Cut calls that were not made again. Each delivered call accounts for one earlier call of the same name. */
export function notMadeAgain(cut: readonly ToolCall[], delivered: readonly ToolCall[]): readonly ToolCall[] {
  const left = [...delivered];
  return cut.filter(({ name, index }) => {
    const again = left.findIndex((call) => call.name === name && call.index > index);
    if (again === -1) return true;
    left.splice(again, 1);
    return false;
  });
}

/** The notice text for the model, as a user message, from the note under the run's id. */
export function lostCallNoteText(value: string): string {
  const left = JSON.parse(value) as readonly string[] | Pick<LostCallNote, 'lost' | 'unknown'>;
  if (!('unknown' in left)) return lostCallText(left);
  const { lost, unknown } = left;
  return [...(lost.length > 0 ? [lostCallText(lost)] : []), unknownResultText(unknown)].join(' ');
}

const unknownResultText = (tools: readonly string[]): string =>
  `My connection dropped while ${listed(tools)} ran on your side: it may have had its effect, and its result is not known. Look for the effect before you run it again.`;

const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ');

/** `lost`: names of the cut calls. */
export function lostCallText(lost: readonly string[]): string {
  const names = listed(lost);
  return lost.length === 1
    ? `My connection dropped while you made these calls: one more, to ${names}, was cut off and did not run. Make it again if it is still needed.`
    : `My connection dropped while you made these calls: ${lost.length} more, to ${names}, were cut off and did not run. Make them again if they are still needed.`;
}

/** Whether the pointer belongs to this call, as far as the request shows. */
function pointsTo({ digest, answers = [] }: Pointer, call: AnsweredCall): boolean {
  if ('name' in call) return digest === digestOf(call);
  // Providers that store conversations give every call a unique id.
  return call.answer === undefined || answers.includes(shortDigest(call.answer));
}

/** Clients reserialise arguments, so field order and white space must not matter. */
const digestOf = ({ name, arguments: text }: SettledCall): string =>
  shortDigest(JSON.stringify([name, comparableJson(normalisedArguments(text))]));

const shortDigest = (text: string): string =>
  createHash('sha256').update(text).digest('base64url').slice(0, 16);
