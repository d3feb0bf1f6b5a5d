import { settledCalls } from '../../../checkpoint/journal-fold.ts';
import type { Notes } from '../../../checkpoint/notes.ts';
import { type SalvagedRun, saysAnything } from '../../../checkpoint/salvaged-run.ts';
import type { FinalStatus, Owner, RunEnd, RunId } from '../../../checkpoint/store.ts';
import { tailOf } from '../../../lib/text.ts';
import type { NamedCall } from '../../../plans/tool-call.ts';
import type { ProviderTool } from '../../../plans/transcript.ts';

/** Enough for a model to find the place where it stopped. */
const TAIL_CHARACTERS = 400;
/** Keeps notes small. */
const CALLS_MAX = 16;
const NAME_CHARACTERS_MAX = 64;
const UNFINISHED_MAX = 4;
const TOOLS_MAX = 8;
const RESULT_CHARACTERS_MAX = 200;

/** A thread's record of an answer that was cut off. */
export interface ThreadNote {
  readonly run: RunId;
  /** When the run began. Of two runs of a thread, the notice covers the later one. */
  readonly created_at_ms: number;
  readonly status: FinalStatus;
  /** When the answer was cut off, in ISO 8601. */
  readonly interrupted_at: string;
  readonly model: string;
  readonly cause: string;
  readonly partial_tail: string;
  /** Complete calls of the answer, if any. */
  readonly settled_calls?: readonly NamedCall[];
  /** Cut calls of the answer, if any; none of them ran. */
  readonly unfinished_calls?: readonly NamedCall[];
  /** Tools that the provider ran for the answer, if any. */
  readonly provider_tools?: readonly ToolRun[];
}

/** A provider tool, described for the model that called it. */
interface ToolRun {
  readonly name: string;
  /** `unknown`: it may have taken effect. */
  readonly result: 'settled' | 'unknown';
  /** The beginning of its result, in the provider's format. */
  readonly output?: string;
}

/** A run that ended before its answer was complete. */
interface CutRun {
  readonly run: RunId;
  readonly created_at_ms: number;
  /** When the last part of the answer arrived; the run may have ended much later. */
  readonly interrupted_at_ms: number;
  readonly model: string;
  readonly end: Pick<RunEnd, 'status' | 'cause'>;
  /** The partial text of the answer. */
  readonly text: string;
  /** Its settled calls. */
  readonly calls: readonly NamedCall[];
  /** Calls that began and were never settled. */
  readonly unfinished?: readonly NamedCall[];
  readonly providerTools?: readonly ProviderTool[];
}

export const threadKey = (thread: string) => ({ kind: 'thread', name: thread }) as const;

export function threadNote(cut: CutRun): ThreadNote {
  const { run, created_at_ms, interrupted_at_ms, model, end, text, calls } = cut;
  const { unfinished = [], providerTools = [] } = cut;
  const tools = providerTools.slice(-TOOLS_MAX);
  const begun = unfinished.slice(0, UNFINISHED_MAX);
  return {
    run,
    created_at_ms,
    status: end.status,
    interrupted_at: new Date(interrupted_at_ms).toISOString(),
    model,
    cause: end.cause ?? end.status,
    partial_tail: tailOf(text, TAIL_CHARACTERS),
    // Tools and cut calls take the place of settled ones.
    ...(calls.length > 0 && {
      settled_calls: calls.slice(0, CALLS_MAX - tools.length - begun.length).map(named),
    }),
    ...(begun.length > 0 && { unfinished_calls: begun.map(named) }),
    ...(tools.length > 0 && { provider_tools: tools.map(toolRun) }),
  };
}

const named = ({ id, name }: NamedCall): NamedCall => ({
  id: id.slice(0, NAME_CHARACTERS_MAX),
  name: name.slice(0, NAME_CHARACTERS_MAX),
});

const toolRun = ({ name, state, items }: ProviderTool): ToolRun => ({
  name: name.slice(0, NAME_CHARACTERS_MAX),
  ...(state === 'running'
    ? { result: 'unknown' }
    : { result: 'settled', output: JSON.stringify(items.at(-1) ?? {}).slice(0, RESULT_CHARACTERS_MAX) }),
});

/** Leaves a note for the thread's next request, unless a later run has left one. */
export async function leaveThreadNote(
  notes: Notes,
  owner: Owner,
  thread: string,
  note: ThreadNote,
  ttl_ms: number,
): Promise<void> {
  const key = threadKey(thread);
  const known = await notes.get(owner, key);
  if (known !== undefined && readThreadNote(known).created_at_ms > note.created_at_ms) return;
  await notes.put(owner, key, JSON.stringify(note), ttl_ms);
}

/** Removes this run's note from the thread, if it is the current one. */
export async function withdrawThreadNote(
  notes: Notes,
  owner: Owner,
  thread: string,
  run: RunId,
  ttl_ms: number,
): Promise<void> {
  const key = threadKey(thread);
  const known = await notes.get(owner, key);
  if (known === undefined || readThreadNote(known).run !== run) return;
  const taken = await notes.consume(owner, key);
  // Restores a note that another run left in between.
  if (taken !== undefined && readThreadNote(taken).run !== run) await notes.claim(owner, key, taken, ttl_ms);
}

/** The note for the thread of a salvaged run; undefined without a thread or without content. */
export function salvageNote(
  { run, end, journal, givenUp }: SalvagedRun,
  unfinished: readonly NamedCall[] = [],
): ThreadNote | undefined {
  // A run that was given up has already left its own note.
  if (end.status === 'complete' || givenUp || !journal.header || !saysAnything(journal)) return undefined;
  const { created_at_ms, model } = journal.header;
  const { text, refusal, providerTools, stored_at_ms: interrupted_at_ms = end.at_ms } = journal;
  const calls = settledCalls(journal);
  const cut = { run, created_at_ms, interrupted_at_ms, model, end, text: text || refusal };
  return threadNote({ ...cut, calls, unfinished, providerTools });
}

export const readThreadNote = (value: string): ThreadNote => JSON.parse(value) as ThreadNote;

/** The text for the model. Clients search requests for it, so its format is fixed. */
export function threadNoticeText({ run: _run, created_at_ms: _created, ...told }: ThreadNote): string {
  const sentences = [
    SENTENCE,
    ...(told.settled_calls ? [CALLS_SENTENCE] : []),
    ...(told.unfinished_calls ? [UNFINISHED_SENTENCE] : []),
    ...(told.provider_tools ? [TOOLS_SENTENCE] : []),
  ];
  return `last_partial_recovery: ${JSON.stringify(told)} ${sentences.join(' ')}`;
}

const SENTENCE =
  'Your previous answer in this conversation was cut off after the text in partial_tail: go on from there or start again, whichever the conversation calls for now.';

const CALLS_SENTENCE =
  'The calls in settled_calls were complete and may have run: do not make one again unless its result is missing.';

const UNFINISHED_SENTENCE =
  'The calls in unfinished_calls were cut off and did not run: make one again if it is still needed.';

const TOOLS_SENTENCE =
  'The tools in provider_tools ran on your side for that answer: do not run one again, and where its result is unknown look for its effect first.';
