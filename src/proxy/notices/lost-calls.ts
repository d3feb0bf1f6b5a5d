import { createHash } from 'node:crypto';
import type { Notes } from '../../checkpoint/notes.ts';
import type { Owner, RunId } from '../../checkpoint/store.ts';
import { canonicalJson } from '../../plans/canonical-json.ts';
import { normalisedArguments } from '../../plans/tool-proof.ts';
import type { ToolCall } from '../../plans/transcript.ts';

/** Calls of one turn beyond these are not remembered: a note is small. */
const DELIVERED_MAX = 64;
const LOST_MAX = 16;
const NAME_CHARACTERS_MAX = 64;
/** A request is looked up by this many of the results it brings. */
const ANSWERS_MAX = 16;

/** A tool call as the client has it. */
export interface DeliveredCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** A call of which a request has nothing but the result: its provider keeps the conversation. */
export interface KeptCall {
  readonly id: string;
  /** The answer that the request goes on from, if it names it. */
  readonly answer: string | undefined;
}

/** A call whose result a request brings. */
export type AnsweredCall = DeliveredCall | KeptCall;

/** Which calls of a run were cut beside the ones that were delivered. Kept once, under the id of the run. */
export interface LostCallNote {
  readonly run: RunId;
  /** Names of the calls that were cut. */
  readonly lost: readonly string[];
  readonly delivered: readonly DeliveredCall[];
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

/** `undefined` when nobody could be told: no call was lost, or none was delivered whose result would come back. */
export function lostCallNote(
  run: RunId,
  delivered: readonly DeliveredCall[],
  lost: readonly ToolCall[],
  answers: readonly string[] = [],
): LostCallNote | undefined {
  const named = delivered.filter(({ id }) => id !== '').slice(0, DELIVERED_MAX);
  if (named.length === 0 || lost.length === 0) return undefined;
  const names = lost.slice(0, LOST_MAX).map(({ name }) => name.slice(0, NAME_CHARACTERS_MAX));
  return { run, lost: names, delivered: named, answers };
}

export async function leaveLostCallNote(
  notes: Notes,
  owner: Owner,
  { run, lost, delivered, answers }: LostCallNote,
  ttl_ms: number,
): Promise<void> {
  // Before the pointers: a result that finds nothing behind one takes the calls for told.
  await notes.put(owner, lostCallKey(run), JSON.stringify(lost), ttl_ms);
  const named = answers.length > 0 ? { answers: answers.map(shortDigest) } : {};
  const pointers = delivered.map((call) => {
    const pointer: Pointer = { run, digest: digestOf(call), ...named };
    return notes.put(owner, lostCallKey(call.id), JSON.stringify(pointer), ttl_ms);
  });
  await Promise.all(pointers);
}

/** The run that one of these calls was delivered by beside one that was lost, if that is not told yet. */
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

/** What the model is told, as its user. `lost`: names of the calls. */
export function lostCallText(lost: readonly string[]): string {
  const names = lost.map((name) => `\`${name}\``).join(', ');
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

/** Clients parse arguments and write them anew: the order of fields and white space say nothing. */
const digestOf = ({ name, arguments: text }: DeliveredCall): string =>
  shortDigest(JSON.stringify([name, canonicalJson(normalisedArguments(text))]));

const shortDigest = (text: string): string =>
  createHash('sha256').update(text).digest('base64url').slice(0, 16);
