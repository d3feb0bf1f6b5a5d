import { LedgerError } from './errors.ts';
import type { Place } from './place.ts';
import { SeenTask, type TaskProgress } from './seen-task.ts';
import type { TaskRequests } from './task-requests.ts';

/** Rejects with a {@link LedgerError}, or with the signal's reason. */
export async function* followProgress(
  requests: TaskRequests,
  place: Place,
  signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<TaskProgress, void> {
  const seen = new SeenTask();
  let told = '';
  for await (const events of requests.events(place, () => seen.isEnded, signal)) {
    const news = events.filter((event) => seen.add(event));
    if (news.length === 0 || seen.isCatchingUp) continue;
    // A step's event doesn't say how many tokens the task has used so far.
    if (!seen.isPurged) await showAgain(seen, requests, place, signal);
    const { progress } = seen;
    const text = JSON.stringify(progress);
    if (text !== told) yield progress;
    told = text;
    if (seen.isPurged) return;
  }
}

async function showAgain(seen: SeenTask, requests: TaskRequests, place: Place, signal: AbortSignal) {
  try {
    seen.show(await requests.show(place, signal));
  } catch (error) {
    // It was just deleted, as the next event will say.
    if (!(error instanceof LedgerError && error.code === 'task_not_found')) throw error;
  }
}
