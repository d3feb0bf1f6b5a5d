import { readChatRequest } from './chat-request.ts';
import { Endpoints } from './endpoints.ts';
import { type ResumableOptions, readOptions } from './options.ts';
import { ResumableRun } from './resumable-run.ts';

export { EventTooLargeError, SilenceError, StreamInterruptedError } from './errors.ts';
export type { Fetch, ResumableOptions } from './options.ts';

/**
 * A `fetch` whose streamed chat completions survive the death of the replica that serves them: a stream that breaks
 * is resumed at another replica, and the caller reads on as if nothing had happened. Every other request is left as
 * it is. Uses web standards only.
 *
 * Throws a `TypeError` that names the option at fault.
 *
 * @example
 * const client = new OpenAI({ baseURL, fetch: resumable({ endpoints: ['http://a:8080', 'http://b:8080'] }) });
 */
export function resumable(options: ResumableOptions = {}): typeof globalThis.fetch {
  const settings = readOptions(options);
  const { fetch } = settings;
  const endpoints = new Endpoints(settings.endpoints);
  return async (input, init) => {
    const request = await readChatRequest(input, init);
    return request ? new ResumableRun(request, settings, endpoints).start() : fetch(input, init);
  };
}
