/** The source of the caller's response. */
export interface Source {
  /** More of the body; undefined at its end. The caller reads the error that it rejects with. */
  read(): Promise<string | undefined>;
  /** The caller wants no more. */
  leave(): void;
}

/**
 * A replica's response with the body of `source`, read at the caller's pace. `signal` ends the body at once, even during
 * a read.
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
    // A slow caller slows down its replica; the client doesn't read ahead.
    { highWaterMark: 0 },
  );
  const kept = new Headers(headers);
  // These headers describe the bytes of one connection.
  for (const name of ['content-length', 'content-encoding']) kept.delete(name);
  const response = new Response(body, { status, statusText, headers: kept });
  return Object.defineProperty(response, 'url', { value: url });
}
