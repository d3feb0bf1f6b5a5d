/** Processes the frames of a body. */
export interface FrameTaker {
  /** A `data:` event, parsed unless it is `[DONE]`, and its name. */
  take(event: unknown, name: string | undefined): void;
  /** An advisory in a comment. */
  advise(advisory: Record<string, unknown>): void;
  complain(what: string): void;
}

const ADVISORY = ': holdfast ';

/**
 * Reads a body line by line, and accepts only the form in which Holdfast writes each line. Returns the number of
 * `data:` events.
 */
export function readFrames(body: string, taker: FrameTaker): number {
  let events = 0;
  let name: string | undefined;
  for (const line of body.split('\n')) {
    if (line === '') continue;
    if (line.startsWith(': ')) {
      if (line.startsWith(ADVISORY)) taker.advise(JSON.parse(line.slice(ADVISORY.length)));
    } else if (line.startsWith('event: ')) {
      name = line.slice('event: '.length);
    } else if (line.startsWith('data: ')) {
      events++;
      const data = line.slice('data: '.length);
      taker.take(data === '[DONE]' ? data : JSON.parse(data), name);
      name = undefined;
    } else {
      taker.complain(`a line of no kind: ${line}`);
    }
  }
  return events;
}
