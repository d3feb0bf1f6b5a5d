import type { Notes } from '../../checkpoint/notes.ts';
import type { SalvagedRun } from '../../checkpoint/salvaged-run.ts';
import { saysAnything } from '../../checkpoint/salvaged-run.ts';
import type { FinalStatus, Owner, RunEnd, RunId } from '../../checkpoint/store.ts';
import { tailOf } from './text-tail.ts';

/** As much as a model needs to find the place where it stopped. */
const TAIL_CHARACTERS = 400;

/** An answer that was cut off, as its thread remembers it. */
export interface ThreadNote {
  readonly run: RunId;
  /** When the run began: of two runs of a thread, the model is told about the later one. */
  readonly created_at_ms: number;
  readonly status: FinalStatus;
  /** ISO 8601. */
  readonly interrupted_at: string;
  readonly model: string;
  readonly cause: string;
  readonly partial_tail: string;
}

/** A run that ended before its answer did. */
export interface CutRun {
  readonly run: RunId;
  readonly created_at_ms: number;
  readonly model: string;
  readonly end: RunEnd;
  /** Text of the answer as far as it came. */
  readonly text: string;
}

export const threadKey = (thread: string) => ({ kind: 'thread', name: thread }) as const;

export const threadNote = ({ run, created_at_ms, model, end, text }: CutRun): ThreadNote => ({
  run,
  created_at_ms,
  status: end.status,
  interrupted_at: new Date(end.at_ms).toISOString(),
  model,
  cause: end.cause ?? end.status,
  partial_tail: tailOf(text, TAIL_CHARACTERS),
});

/** Leaves a note for the thread's next request, unless there is one about a later run. */
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

/** What a salvaged run has to tell its thread, if it is of one and there is anything to tell. */
export function salvageNote({ run, end, journal, givenUp }: SalvagedRun): ThreadNote | undefined {
  // A run that was given up has left its note itself.
  if (end.status === 'complete' || givenUp || !journal.header || !saysAnything(journal)) return undefined;
  const { created_at_ms, model } = journal.header;
  return threadNote({ run, created_at_ms, model, end, text: journal.text || journal.refusal });
}

export const readThreadNote = (value: string): ThreadNote => JSON.parse(value) as ThreadNote;

/** What the model is told. The form is fixed: clients look for it in what they sent. */
export function threadNoticeText({ run: _run, created_at_ms: _created, ...told }: ThreadNote): string {
  return `last_partial_recovery: ${JSON.stringify(told)} ${SENTENCE}`;
}

const SENTENCE =
  'Your previous answer in this conversation was cut off after the text in partial_tail: go on from there or start again, whichever the conversation calls for now.';
