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

/** Calls of one turn beyond these are not remembered: a note is small. */
const DELIVERED_MAX = 64;
const LOST_MAX = 16;
const NAME_CHARACTERS_MAX = 64;
/** A request is looked up by this many of the results it brings. */
const ANSWERS_MAX = 16;

/** Which calls of a run were cut beside the ones that were delivered. Kept once, under the id of the run. */
export interface LostCallNote {
  readonly run: RunId;
  /** Names of the calls that were cut. */
  readonly lost: readonly string[];
  /** Names of tools that the provider was running, whose results are not known. */
  readonly unknown: readonly string[];
  readonly delivered: readonly SettledCall[];
  /** What the answer is called, by its client and its provider, where requests may name it. */
  readonly answers: readonly string[];
}

/** What is kept under the id of each delivered call, for its result to find the note by. */
interface Pointer {
  readonly run: RunId;
  /** Of the call: providers that number their calls use the same ids again and again. */
  readonly digest: string;
  /** Digests of the ids of the answer, by which a request may name it that does not have the call. */
  readonly answers?: readonly string[];
}

export const lostCallKey = (name: RunId | string) => ({ kind: 'lost_call', name }) as const;

/** `undefined` when no call was lost, or when none was delivered whose result could bring the notice. */
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
  // Before the pointers: a reader that finds nothing behind a pointer assumes that the notice was delivered.
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

/** The run that delivered one of these calls and lost another one, if the model does not know that yet. */
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

/**
 * Calls that were cut before and not made again: each delivered call that began after one of the same name stands
 * for it.
 */
export function notMadeAgain(cut: readonly ToolCall[], delivered: readonly ToolCall[]): readonly ToolCall[] {
  const left = [...delivered];
  return cut.filter(({ name, index }) => {
    const again = left.findIndex((call) => call.name === name && call.index > index);
    if (again === -1) return true;
    left.splice(again, 1);
    return false;
  });
}

/** The text for the model, in the role of the user, from the note under the id of the run. */
export function lostCallNoteText(value: string): string {
  const left = JSON.parse(value) as readonly string[] | Pick<LostCallNote, 'lost' | 'unknown'>;
  if (!('unknown' in left)) return lostCallText(left);
  const { lost, unknown } = left;
  return [...(lost.length > 0 ? [lostCallText(lost)] : []), unknownResultText(unknown)].join(' ');
}

const unknownResultText = (tools: readonly string[]): string =>
  `My connection dropped while ${listed(tools)} ran on your side: it may have had its effect, and its result is not known. Look for the effect before you run it again.`;

const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ');

/** `lost`: names of the calls. */
export function lostCallText(lost: readonly string[]): string {
  const names = listed(lost);
  return lost.length === 1
    ? `My connection dropped while you made these calls: one more, to ${names}, was cut off and did not run. Make it again if it is still needed.`
    : `My connection dropped while you made these calls: ${lost.length} more, to ${names}, were cut off and did not run. Make them again if they are still needed.`;
}

/** Whether it was left for this very call, as far as the request shows it. */
function pointsTo({ digest, answers = [] }: Pointer, call: AnsweredCall): boolean {
  if ('name' in call) return digest === digestOf(call);
  // Providers that keep conversations give every call an id of its own.
  return call.answer === undefined || answers.includes(shortDigest(call.answer));
}

/** Clients parse arguments and write them anew: the order of fields and white space are not significant. */
const digestOf = ({ name, arguments: text }: SettledCall): string =>
  shortDigest(JSON.stringify([name, comparableJson(normalisedArguments(text))]));

const shortDigest = (text: string): string =>
  createHash('sha256').update(text).digest('base64url').slice(0, 16);
