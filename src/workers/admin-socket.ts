import { request } from 'node:http';
import { json } from 'node:stream/consumers';
import { createParser, type EventSourceMessage } from 'eventsource-parser';

/** How long to wait for a worker's answer. */
const ANSWER_MAX_MS = 5000;

interface Answer {
  readonly status: number;
  readonly document: unknown;
}

/** Requests a document from a worker's admin interface. Rejects if the worker doesn't answer. */
export function readDocument(socket: string, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { socketPath: socket, path, agent: false, signal: AbortSignal.timeout(ANSWER_MAX_MS) },
      (response) => {
        json(response).then((document) => resolve({ status: response.statusCode ?? 0, document }), reject);
      },
    );
    asked.on('error', reject).end();
  });
}

interface EventHandlers {
  onEvent(event: EventSourceMessage): void;
  /** The worker has ended or never answered. */
  onEnd(): void;
}

/** Reads a worker's `GET /runs/events`. Returns a function that stops it. */
export function readEvents(socket: string, { onEvent, onEnd }: EventHandlers): () => void {
  const parser = createParser({ onEvent });
  const asked = request({ socketPath: socket, path: '/runs/events', agent: false }, (response) => {
    if (response.statusCode !== 200) return void asked.destroy();
    response.setEncoding('utf8');
    response.on('data', (text: string) => parser.feed(text));
    // Every error is followed by `close`.
    response.on('error', () => {});
  });
  asked
    .on('error', () => {})
    .on('close', onEnd)
    .end();
  return () => void asked.off('close', onEnd).destroy();
}
