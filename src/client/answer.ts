import { retryAfterMs } from '../interrupts/retry-after.ts';
import { fieldsOf } from './wires.ts';

/** Codes of errors that are no answer to the request: the replica could not look at it, or has it no more. */
const TRY_ELSEWHERE: readonly unknown[] = ['shutting_down', 'store_unavailable', 'run_taken_over'];

/** The stream of a run. Any other stream is not Holdfast's, and cannot be resumed. */
export const opensRun = (response: Response): boolean =>
  response.status === 200 &&
  response.body !== null &&
  response.headers.has('holdfast-run-id') &&
  (response.headers.get('content-type') ?? '').startsWith('text/event-stream');

/** The status of a replica, or of what stands before it, that cannot take a request now. */
export const isUnavailable = (status: number): boolean => [502, 503, 504].includes(status);

/**
 * Whether this comes from a replica, or from what stands before it, that cannot take a request now. An error object
 * says otherwise: Holdfast has tried, and asking again would only multiply its attempts.
 */
export async function isTurnedAway(response: Response): Promise<boolean> {
  if (!isUnavailable(response.status)) return false;
  const error = errorOf(await response.clone().text());
  return error === undefined || TRY_ELSEWHERE.includes(error.code);
}

/**
 * Whether a replica could continue a run if it had its request, which the store has not got: 409. Or it has nothing of
 * the run at all, 404: then everything that the client has is needed, too.
 */
export async function wantsRequest(response: Response, { isWhole }: { isWhole: boolean }): Promise<boolean> {
  const { status } = response;
  if (status !== 409 && !(status === 404 && isWhole)) return false;
  const text = await response.clone().text();
  return status === 409 ? saysRequestWanted(text) : errorOf(text)?.code === 'run_not_found';
}

/** The same of an error event: the wire of such a run is unknown, so that it is the same on all. */
export const saysRequestWanted = (payload: string): boolean =>
  payload.includes('"not_resumable"') && errorOf(payload)?.code === 'not_resumable';

/** How long the response asks to wait; undefined if it does not. */
export const retryAfterOf = ({ headers }: Response): number | undefined =>
  retryAfterMs(Object.fromEntries(headers), Date.now());

/** Lets go of a response that will not be read. */
export function discard(response: Response): void {
  response.body?.cancel().catch(() => {});
}

function errorOf(body: string): { readonly code?: unknown } | undefined {
  const error = fieldsOf(body)?.error;
  return typeof error === 'object' && error !== null ? error : undefined;
}
