/** Where the caller's response comes from. */
export interface Source {
  /** More of the body, undefined at its end. What it rejects with is what the caller reads. */
  read(): Promise<string | undefined>;
  /** The caller takes no more. */
  leave(): void;
}

/**
 * The response of a replica with the body of `source`, which is read as the caller reads. `signal` ends the
 * body at once, whatever is under way.
 */
export function callerResponse(
  { status, statusText, headers, url }: Response,
  source: Source,
  signal: AbortSignal,
): Response {
  const encoder = new TextEncoder();
  const settled = new AbortController();
  const leave = () => {
    settled.abort();
    source.leave();
  };
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start(stream) {
        const abort = () => {
          stream.error(signal.reason);
          leave();
        };
        signal.addEventListener('abort', abort, { signal: settled.signal });
      },
      async pull(stream) {
        const text = await source.read().catch((error: unknown) => {
          settled.abort();
          throw error;
        });
        if (text !== undefined) return stream.enqueue(encoder.encode(text));
        settled.abort();
        stream.close();
      },
      cancel: leave,
    },
    // A slow caller slows down its replica; nothing is read ahead of it.
    { highWaterMark: 0 },
  );
  const kept = new Headers(headers);
  // They speak of the bytes of one connection.
  for (const name of ['content-length', 'content-encoding']) kept.delete(name);
  const response = new Response(body, { status, statusText, headers: kept });
  return Object.defineProperty(response, 'url', { value: url });
}
