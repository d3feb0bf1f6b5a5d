import { retryAfterMs } from '../interrupts/retry-after.ts';
import { fieldsOf } from './wires.ts';

/** Error codes that don't answer the request: the replica couldn't process it, or no longer has it. */
const TRY_ELSEWHERE: readonly unknown[] = ['shutting_down', 'store_unavailable', 'run_taken_over'];

/** The stream of a run. Any other stream isn't Holdfast's, and can't be resumed. */
export const opensRun = (response: Response): boolean =>
  response.status === 200 &&
  response.body !== null &&
  response.headers.has('holdfast-run-id') &&
  (response.headers.get('content-type') ?? '').startsWith('text/event-stream');

/** The statuses with which a replica, or something in front of it, says that it can't accept requests now. */
export const isUnavailable = (status: number): boolean => [502, 503, 504].includes(status);

/**
 * Whether a replica, or something in front of it, can't accept a request now. An error object says otherwise: Holdfast
 * has tried, and asking again would only multiply its attempts.
 */
export async function isTurnedAway(response: Response): Promise<boolean> {
  if (!isUnavailable(response.status)) return false;
  const error = errorOf(await response.clone().text());
  return error === undefined || TRY_ELSEWHERE.includes(error.code);
}

/**
 * Whether a replica could continue a run if it had the request, which the store lacks: 409. Or it knows nothing about
 * the run, 404: then it needs everything that the client has, too.
 */
export async function wantsRequest(response: Response, { isWhole }: { isWhole: boolean }): Promise<boolean> {
  const { status } = response;
  if (status !== 409 && !(status === 404 && isWhole)) return false;
  const text = await response.clone().text();
  return status === 409 ? saysRequestWanted(text) : errorOf(text)?.code === 'run_not_found';
}

/** The same for an error event. The wire of such a run is unknown, so the event is the same on all wires. */
export const saysRequestWanted = (payload: string): boolean =>
  payload.includes('"not_resumable"') && errorOf(payload)?.code === 'not_resumable';

/** How long the response asks to wait; undefined if it doesn't ask. */
export const retryAfterOf = ({ headers }: Response): number | undefined =>
  retryAfterMs(Object.fromEntries(headers), Date.now());

/** Discards a response that the caller won't read. */
export function discard(response: Response): void {
  response.body?.cancel().catch(() => {});
}

function errorOf(body: string): { readonly code?: unknown } | undefined {
  const error = fieldsOf(body)?.error;
  return typeof error === 'object' && error !== null ? error : undefined;
}
