import { createParser, type EventSourceMessage } from 'eventsource-parser';

/** Keep-alives come more often; whoever sends none of them for so long is gone. */
const SILENCE_MAX_MS = 90_000;

/**
 * The events of one response as they come. Ends where the body does, and rejects when it breaks off or falls silent.
 * `closing` closes the connection.
 */
export async function* eventsOf(
  response: Response,
  closing: AbortController,
): AsyncGenerator<EventSourceMessage> {
  const arrived: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => arrived.push(event) });
  const text = new TextDecoder();
  const silence = setTimeout(() => closing.abort(new Error('nothing came any more')), SILENCE_MAX_MS);
  try {
    for await (const bytes of response.body ?? []) {
      silence.refresh();
      parser.feed(text.decode(bytes, { stream: true }));
      yield* arrived.splice(0);
    }
  } finally {
    clearTimeout(silence);
    closing.abort();
  }
}
