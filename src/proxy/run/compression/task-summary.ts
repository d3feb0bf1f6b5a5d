import { hash } from 'node:crypto';
import { STORE_WAIT_MAX_MS } from '../../../checkpoint/best-effort-store.ts';
import type { NoteKey } from '../../../checkpoint/notes.ts';
import { isObject, parsedJson } from '../../../lib/json.ts';
import { inTime } from '../../../lib/time.ts';
import { canonicalJson } from '../../../plans/canonical-json.ts';
import { type Middle, middleAt, placeOf, type SummaryPlace } from '../../../plans/compression.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import type { TakenApart } from './omission.ts';

/** A task's last summary, which any replica may reuse. */
export interface TaskSummary extends SummaryPlace {
  readonly summary: string;
  /** Digest of the messages it covers. */
  readonly digest: string;
}

export const taskSummaryNote = (task: string): NoteKey => ({ kind: 'task_summary', name: task });

/**
 * `undefined` if the run is no step of a task, there is no summary, or the store does not answer in time. Never
 * rejects.
 */
export async function summaryOfTask(
  { id, owner, step }: Run,
  { store, time, log }: RunContext,
): Promise<TaskSummary | undefined> {
  if (!step) return undefined;
  const asked = store.notes.get(owner, taskSummaryNote(step.task)).catch((error: unknown) => {
    log.warn({ run: id, err: error }, 'the summary of a task is not used: the store does not answer');
    return undefined;
  });
  const noted = await inTime(asked, time, STORE_WAIT_MAX_MS);
  return noted === undefined ? undefined : summaryIn(noted);
}

/** Replaces the stored summary, so that later steps and other replicas use it. Never rejects. */
export async function keepForTask(
  { id, owner, step }: Run,
  summary: TaskSummary,
  { store, configuration, time, log }: RunContext,
): Promise<void> {
  if (!step) return;
  const ttl_ms = configuration.checkpoint.ttl_s * 1000;
  const put = store.notes.put(owner, taskSummaryNote(step.task), JSON.stringify(summary), ttl_ms);
  const kept = put.catch((error: unknown) => {
    log.warn({ run: id, err: error }, 'the summary of a task is not kept: the store refuses it');
  });
  await inTime(kept, time, STORE_WAIT_MAX_MS);
}

export const taskSummary = (summary: string, { messages }: TakenApart, middle: Middle): TaskSummary => ({
  ...placeOf(middle),
  summary,
  digest: digestOf(messages, middle),
});

/**
 * The part of a conversation that the summary replaces; `undefined` unless the conversation contains that part and at
 * least `keep` more messages.
 */
export function middleOfSummary(
  summary: TaskSummary,
  { messages, parts }: TakenApart,
  keep: number,
): Middle | undefined {
  if (messages.length - keep < summary.end) return undefined;
  const middle = middleAt(parts, summary);
  return digestOf(messages, middle) === summary.digest ? middle : undefined;
}

/** Excludes instructions: they stay, and agents may put the time of day into them. */
function digestOf(messages: readonly unknown[], { left_out, joined_to }: Middle): string {
  const places = new Set([...left_out, joined_to]);
  const told = messages.filter((_, index) => places.has(index));
  return hash('sha256', canonicalJson(JSON.stringify(told)), 'hex');
}

function summaryIn(noted: string): TaskSummary | undefined {
  const summary = parsedJson(noted);
  if (!isObject(summary) || typeof summary.summary !== 'string') return undefined;
  return summary as unknown as TaskSummary;
}
