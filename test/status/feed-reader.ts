import { onTestFinished } from 'vitest';

/** The events of `GET /runs/events` as they arrive. */
export interface Feed {
  readonly status: number;
  readonly headers: Headers;
  /** Everything received so far. */
  readonly text: string;
  /** Resolves once the other side has ended the feed. */
  readonly ended: Promise<void>;
  /** The next event, which must have this name. */
  next<Data>(event: string): Promise<Data>;
  /** The next event with this name that `isWanted` accepts; skips others. */
  until<Data>(event: string, isWanted: (data: Data) => boolean): Promise<Data>;
  close(): void;
}

/** Closed when the test ends. */
export async function openFeed(admin: string, inTest = true): Promise<Feed> {
  const abort = new AbortController();
  if (inTest) onTestFinished(() => abort.abort());
  const response = await fetch(`${admin}/runs/events`, { signal: abort.signal });
  const events: { event: string; data: string }[] = [];
  let waiting = Promise.withResolvers<void>();
  let text = '';
  let rest = '';
  const read = async () => {
    for await (const bytes of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += bytes;
      rest += bytes;
      // Avoid searching a large snapshot from its beginning for every piece.
      if (!/\n\n|^\n/.test(bytes)) continue;
      const blocks = rest.split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const [, event, data] = /^event: (.+)\ndata: (.+)$/.exec(block) ?? [];
        if (event !== undefined && data !== undefined) events.push({ event, data });
      }
      waiting.resolve();
      waiting = Promise.withResolvers();
    }
  };
  const ended = read().catch(() => {});
  const take = async () => {
    for (;;) {
      const event = events.shift();
      if (event) return event;
      await waiting.promise;
    }
  };
  return {
    status: response.status,
    headers: response.headers,
    get text() {
      return text;
    },
    ended,
    async next(name) {
      const { event, data } = await take();
      if (event !== name) throw new Error(`the next event is ${event}, not ${name}`);
      return JSON.parse(data);
    },
    async until(name, isWanted) {
      for (;;) {
        const { event, data } = await take();
        if (event !== name) continue;
        const parsed = JSON.parse(data);
        if (isWanted(parsed)) return parsed;
      }
    },
    close: () => abort.abort(),
  };
}
