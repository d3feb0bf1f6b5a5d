import { onTestFinished } from 'vitest';
import type { Replica } from '../../replica.ts';
import { CREDENTIAL } from '../run-deployment.ts';

export interface TaskEvent {
  readonly id: string;
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A client of `GET /holdfast/v1/tasks/T23/events`. */
export interface EventReader {
  readonly events: TaskEvent[];
  /** Lines that don't belong to an event. */
  readonly comments: string[];
  /** Resolves with true if the response ended properly, and with false if it broke off. */
  readonly ended: Promise<boolean>;
  leave(): void;
}

export async function watchTask(
  { api }: Replica,
  { query = '', last }: { readonly query?: string; readonly last?: string | undefined } = {},
): Promise<EventReader> {
  const leaving = new AbortController();
  onTestFinished(() => leaving.abort());
  const response = await fetch(`${api}/holdfast/v1/tasks/T23/events${query}`, {
    headers: { ...CREDENTIAL, ...(last !== undefined && { 'last-event-id': last }) },
    signal: leaving.signal,
  });
  const type = response.headers.get('content-type');
  if (response.status !== 200 || !type?.startsWith('text/event-stream') || !response.body)
    throw new Error(`${response.status}: ${await response.text()}`);
  const events: TaskEvent[] = [];
  const comments: string[] = [];
  const read = async (body: ReadableStream<Uint8Array>): Promise<boolean> => {
    let rest = '';
    const decoder = new TextDecoder();
    for await (const bytes of body) {
      const frames = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
      rest = frames.pop() ?? '';
      for (const frame of frames) {
        const lines = frame.split('\n');
        comments.push(...lines.filter((line) => line.startsWith(':')));
        const fields = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s).slice(0, 2)));
        const { id = '', event: name = '', data = '' } = fields as Record<string, string>;
        events.push({ id, name, data: JSON.parse(data) as TaskEvent['data'] });
      }
    }
    return true;
  };
  const ended = read(response.body).catch(() => false);
  return { events, comments, ended, leave: () => leaving.abort() };
}
