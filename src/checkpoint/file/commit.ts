import type { Reply, Request, RequestHandlers, RequestKind, Writing } from './protocol.ts';
import { toRefusal } from './refusal.ts';
import type { Outcome, SegmentLog } from './segment-log.ts';

type Prepared = Reply | Writing<unknown>;

/** Requests whose answers depend on what earlier requests wrote. */
const READING: ReadonlySet<RequestKind> = new Set([
  'extend_note',
  'get_note',
  'take_note',
  'read',
  'orphans',
  'indexed_runs',
]);

/** Performs requests in order. A reading request starts a new batch, so that it sees everything written before it. */
export function commit(
  requests: readonly Request[],
  log: SegmentLog,
  handlers: RequestHandlers,
): readonly Reply[] {
  const replies: Reply[] = [];
  for (let start = 0; start < requests.length; ) {
    let end = start + 1;
    while (end < requests.length && !READING.has((requests[end] as Request)[0])) end++;
    replies.push(...commitTogether(requests.slice(start, end), log, handlers));
    start = end;
  }
  return replies;
}

/**
 * Performs requests together: catches up with the log, collects the lines of every request, appends them in one write
 * and answers each request from the outcomes of its own lines.
 */
function commitTogether(
  requests: readonly Request[],
  log: SegmentLog,
  handlers: RequestHandlers,
): readonly Reply[] {
  try {
    log.catchUp();
  } catch (error) {
    const refusal = toRefusal(error);
    return requests.map(() => ({ refusal }));
  }
  const prepared = requests.map((request) => prepare(request, handlers));
  let lines = '';
  for (const step of prepared) if (isWriting(step)) for (const line of step.lines) lines += line;
  let outcomes: readonly Outcome[] = [];
  let failure: unknown;
  try {
    if (lines !== '') outcomes = log.append(lines);
  } catch (error) {
    failure = error;
  }
  let next = 0;
  return prepared.map((step) => {
    if (!isWriting(step)) return step;
    const own = outcomes.slice(next, next + step.lines.length);
    next += step.lines.length;
    return settle(step, own, step.lines.length > 0 ? failure : undefined);
  });
}

function settle(step: Writing<unknown>, outcomes: readonly Outcome[], failure: unknown): Reply {
  if (failure !== undefined) return { refusal: toRefusal(failure) };
  try {
    return replyWith(step.answer(outcomes));
  } catch (error) {
    return { refusal: toRefusal(error) };
  }
}

function prepare([kind, request]: Request, handlers: RequestHandlers): Prepared {
  try {
    const prepared = handlers[kind](request as never);
    return isWriting(prepared) ? prepared : replyWith(prepared.answer);
  } catch (error) {
    return { refusal: toRefusal(error) };
  }
}

const isWriting = (step: Prepared): step is Writing<unknown> => step !== undefined && 'lines' in step;
const replyWith = (answer: unknown): Reply => (answer === undefined ? undefined : { answer });
