import { discard, isTurnedAway } from './answer.ts';
import { Endpoints } from './endpoints.ts';
import { type ResumableOptions, readOptions, type Settings } from './options.ts';
import { ResumableRun } from './resumable-run.ts';
import { RunRequests, readWireRequest, type WireRequest } from './wire-request.ts';

/**
 * A `fetch` whose streamed answers survive the death of the replica that serves them: it resumes a broken stream at
 * another replica, and the caller keeps reading as if nothing had happened. It handles the streams of chat completions,
 * completions, messages and responses. If a request on these wires doesn't ask for a stream and an endpoint doesn't
 * accept it, the next endpoint gets it, if there are any. Every other request passes unchanged. Uses web standards only.
 *
 * Throws a `TypeError` that names the wrong option.
 *
 * @example
 * const fetch = resumable({ endpoints: ['http://a:8080', 'http://b:8080'] });
 * const openai = new OpenAI({ baseURL: 'http://a:8080/v1', fetch });
 * const anthropic = new Anthropic({ baseURL: 'http://a:8080', fetch });
 */
export function resumable(options: ResumableOptions = {}): typeof globalThis.fetch {
  const settings = readOptions(options);
  const { fetch } = settings;
  const endpoints = new Endpoints(settings.endpoints);
  return async (input, init) => {
    const request = await readWireRequest(input, init);
    if (request?.isStream) return new ResumableRun(request, settings, endpoints).start();
    const hasChoice = settings.endpoints.length > 0;
    return request && hasChoice ? askForWhole(request, settings, endpoints) : fetch(input, init);
  };
}

/**
 * The answer to a request without a stream, from the first replica that accepts it. Asks each replica once, without a
 * wait and with the same key; the caller gets the last one's answer or error, and its SDK may start over.
 */
async function askForWhole(
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
