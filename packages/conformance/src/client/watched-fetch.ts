/** Counts what arrives, byte by byte as far as the clock is concerned, whatever an SDK makes of it. */
export function watchedFetch(arrived: () => void): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    arrived();
    if (!response.body) return response;
    const watch = new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        arrived();
        controller.enqueue(bytes);
      },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(watch), { status, statusText, headers });
  };
}
