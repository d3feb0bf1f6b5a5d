import type { Reply, Request, RequestHandlers, RequestKind, Writing } from './protocol.ts';
import { toRefusal } from './refusal.ts';
import type { Outcome, SegmentLog } from './segment-log.ts';

type Prepared = { readonly answer: unknown } | Writing<unknown>;

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
    while (end < requests.length && !READING.has((requests[end] as Request).kind)) end++;
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
    return requests.map(({ id }) => ({ id, refusal }));
  }
  const prepared = requests.map(({ kind, id, request }) =>
    replyTo(id, () => handlers[kind](request as never) as Prepared),
  );
  let lines = '';
  for (const step of prepared) if ('lines' in step) for (const line of step.lines) lines += line;
  let outcomes: readonly Outcome[] = [];
  let failure: unknown;
  try {
    if (lines !== '') outcomes = log.append(lines);
  } catch (error) {
    failure = error;
  }
  let next = 0;
  return prepared.map((step, at) => {
    if (!('lines' in step)) return step;
    const id = (requests[at] as Request).id;
    const own = outcomes.slice(next, next + step.lines.length);
    next += step.lines.length;
    return settle(id, step, own, step.lines.length > 0 ? failure : undefined);
  });
}

function settle(id: number, step: Writing<unknown>, outcomes: readonly Outcome[], failure: unknown): Reply {
  if (failure !== undefined) return { id, refusal: toRefusal(failure) };
  try {
    return { id, answer: step.answer(outcomes) };
  } catch (error) {
    return { id, refusal: toRefusal(error) };
  }
}

function replyTo(id: number, prepare: () => Prepared): Reply | Writing<unknown> {
  try {
    const prepared = prepare();
    return 'lines' in prepared ? prepared : { id, answer: prepared.answer };
  } catch (error) {
    return { id, refusal: toRefusal(error) };
  }
}
