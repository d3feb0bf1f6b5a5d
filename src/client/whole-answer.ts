import { discard, isTurnedAway } from './answer.ts';
import type { Endpoints } from './endpoints.ts';
import type { Settings } from './options.ts';
import { RunRequests } from './run-requests.ts';
import type { WireRequest } from './wire-request.ts';

/**
 * The answer to a request that asks for no stream, from the first replica that takes it. Each is asked once, without a
 * wait and with the same key; what the last of them made of it is for the caller, whose SDK may begin again.
 */
export async function askForWhole(
  request: WireRequest,
  { fetch }: Pick<Settings, 'fetch'>,
  endpoints: Endpoints,
): Promise<Response> {
  const { signal } = request;
  const requests = new RunRequests(request);
  const asked = new Set<string>();
  for (let root = endpoints.first(request.root); ; root = endpoints.after(root)) {
    asked.add(root);
    const { url, init } = requests.original(root);
    try {
      const response = await fetch(url, { ...init, ...(signal && { signal }) });
      if (!(await isTurnedAway(response))) {
        endpoints.answered(root);
        return response;
      }
      endpoints.failed(root);
      if (asked.has(endpoints.after(root))) return response;
      discard(response);
    } catch (error) {
      if (signal?.aborted) throw error;
      endpoints.failed(root);
      if (asked.has(endpoints.after(root))) throw error;
    }
  }
}
