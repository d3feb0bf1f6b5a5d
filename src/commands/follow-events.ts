import { setTimeout as pause } from 'node:timers/promises';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { CommandFailure } from './command.ts';
import { ReplicaUnreachable } from './replica-port.ts';

/** Keep-alives come more often; a replica that sends none of them for so long is gone. */
const SILENCE_MAX_MS = 90_000;
const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 2000;
/** How long nothing new may come before the command gives up. */
const FRUITLESS_MAX_MS = 60_000;

/**
 * Reads the events of a stream until `read` returns true for the last one, however often the connection breaks. `open`
 * opens the stream again, its controller closes the connection. Rejects with what is wrong when connecting again is of no use.
 */
export async function followEvents(
  open: (closing: AbortController) => Promise<Response>,
  read: (event: EventSourceMessage) => boolean | Promise<boolean>,
): Promise<void> {
  let pause_ms = PAUSE_MIN_MS;
  let fruitful_at_ms = performance.now();
  for (;;) {
    let broken: unknown;
    try {
      const closing = new AbortController();
      for await (const event of eventsOf(await open(closing), closing)) {
        pause_ms = PAUSE_MIN_MS;
        fruitful_at_ms = performance.now();
        if (await read(event)) return;
      }
    } catch (error) {
      broken = error;
    }
    if (broken instanceof CommandFailure && !(broken instanceof ReplicaUnreachable)) throw broken;
    if (performance.now() - fruitful_at_ms > FRUITLESS_MAX_MS) {
      if (broken instanceof CommandFailure) throw broken;
      throw new CommandFailure('the connection broke, and nothing more came of connecting again.');
    }
    await pause(pause_ms);
    pause_ms = Math.min(2 * pause_ms, PAUSE_MAX_MS);
  }
}

/** The events of one response as they come. Ends where the body does, and rejects when it breaks off or falls silent. */
async function* eventsOf(response: Response, closing: AbortController): AsyncGenerator<EventSourceMessage> {
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
