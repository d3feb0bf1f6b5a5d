import type { RunTarget } from '../../upstream/target.ts';
import { TransportFailure } from '../../upstream/transport.ts';
import type { RunContext } from '../context/run-context.ts';

/** A provider that takes longer is left to itself. */
const STOP_WAIT_MAX_MS = 2_000;

/**
 * Has a provider stop at an answer that nobody waits for any more, by a `DELETE` of this address. False where it cannot be
 * told to; `undefined` if nobody knows whether it was.
 */
export async function stopAnswer(
  url: string,
  { upstream, headers }: RunTarget,
  { configuration, transport, time }: RunContext,
): Promise<boolean | undefined> {
  const abort = new AbortController();
  const cancelTimer = time.after(STOP_WAIT_MAX_MS, () => abort.abort());
  const { 'content-type': _, ...sent } = headers;
  const { connect_ms } = { ...configuration.clocks, ...upstream.clocks };
  try {
    const { status, body } = await transport.open({
      method: 'DELETE',
      url,
      headers: sent,
      signal: abort.signal,
      connect_ms,
    });
    await body.consume(() => undefined);
    // A server in trouble says nothing of what it could do.
    return status < 300 ? true : status < 500 ? false : undefined;
  } catch (error) {
    if (!(error instanceof TransportFailure)) throw error;
    return undefined;
  } finally {
    cancelTimer();
  }
}
