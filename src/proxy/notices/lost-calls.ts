import { createHash } from 'node:crypto';
import type { Notes } from '../../checkpoint/notes.ts';
import type { Owner, RunId } from '../../checkpoint/store.ts';
import { isObject } from '../../json.ts';
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

/** Which calls of a run were cut beside the ones that were delivered. Kept once, under the id of the run. */
export interface LostCallNote {
  readonly run: RunId;
  /** Names of the calls that were cut. */
  readonly lost: readonly string[];
  readonly delivered: readonly DeliveredCall[];
}

/** What is kept under the id of each delivered call, for its result to find the note by. */
interface Pointer {
  readonly run: RunId;
  /** Of the call: providers that number their calls use the same ids again and again. */
  readonly digest: string;
}

export const lostCallKey = (name: RunId | string) => ({ kind: 'lost_call', name }) as const;

/** `undefined` when nobody could be told: no call was lost, or none was delivered whose result would come back. */
export function lostCallNote(
  run: RunId,
  delivered: readonly DeliveredCall[],
  lost: readonly ToolCall[],
): LostCallNote | undefined {
  const named = delivered.filter(({ id }) => id !== '').slice(0, DELIVERED_MAX);
  if (named.length === 0 || lost.length === 0) return undefined;
  const names = lost.slice(0, LOST_MAX).map(({ name }) => name.slice(0, NAME_CHARACTERS_MAX));
  return { run, lost: names, delivered: named };
}

export async function leaveLostCallNote(
  notes: Notes,
  owner: Owner,
  { run, lost, delivered }: LostCallNote,
  ttl_ms: number,
): Promise<void> {
  // Before the pointers: a result that finds nothing behind one takes the calls for told.
  await notes.put(owner, lostCallKey(run), JSON.stringify(lost), ttl_ms);
  const pointers = delivered.map((call) => {
    const pointer: Pointer = { run, digest: digestOf(call) };
    return notes.put(owner, lostCallKey(call.id), JSON.stringify(pointer), ttl_ms);
  });
  await Promise.all(pointers);
}

/** The run that one of these calls was delivered by beside one that was lost, if that is not told yet. */
export async function runWithLostCall(
  notes: Notes,
  owner: Owner,
  answered: readonly DeliveredCall[],
): Promise<RunId | undefined> {
  const found = await Promise.all(
    answered.map(async (call) => {
      const value = await notes.get(owner, lostCallKey(call.id));
      const pointer = value === undefined ? undefined : (JSON.parse(value) as Pointer);
      return pointer?.digest === digestOf(call) ? pointer.run : undefined;
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

/** Calls of the latest assistant turn whose results the request brings. */
export function answeredCalls(messages: readonly unknown[]): readonly DeliveredCall[] {
  const all = messages.filter(isObject);
  // An answer that the client has begun itself comes after the results.
  const end = all.at(-1)?.role === 'assistant' ? all.length - 1 : all.length;
  const turn = all.slice(0, end).findLastIndex(({ role }) => role === 'assistant');
  const results = all.slice(turn + 1, end).filter(({ role }) => role === 'tool');
  const ids = new Set(results.map(({ tool_call_id }) => tool_call_id));
  if (ids.size === 0) return [];
  const calls = all[turn]?.tool_calls;
  return (Array.isArray(calls) ? calls : [])
    .filter(isCall)
    .filter(({ id }) => ids.has(id))
    .slice(0, ANSWERS_MAX)
    .map(({ id, function: { name, arguments: text } }) => ({ id, name, arguments: text }));
}

/** What the model is told, as its user. `lost`: names of the calls. */
export function lostCallText(lost: readonly string[]): string {
  const names = lost.map((name) => `\`${name}\``).join(', ');
  return lost.length === 1
    ? `My connection dropped while you made these calls: one more, to ${names}, was cut off and did not run. Make it again if it is still needed.`
    : `My connection dropped while you made these calls: ${lost.length} more, to ${names}, were cut off and did not run. Make them again if they are still needed.`;
}

interface CallMessage {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

function isCall(call: unknown): call is CallMessage {
  if (!isObject(call) || typeof call.id !== 'string' || !isObject(call.function)) return false;
  return typeof call.function.name === 'string' && typeof call.function.arguments === 'string';
}

/** Clients parse arguments and write them anew: the order of fields and white space say nothing. */
function digestOf({ name, arguments: text }: DeliveredCall): string {
  return createHash('sha256')
    .update(JSON.stringify([name, canonicalJson(normalisedArguments(text))]))
    .digest('base64url')
    .slice(0, 16);
}
