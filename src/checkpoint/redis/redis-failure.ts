/** Redis could not be asked, or refused. Unlike an error of the client it says nothing of what was sent. */
export class RedisFailureError extends Error {
  override readonly name = 'RedisFailureError';
  readonly reason: string;

  /** `server`: its URL without user and password. */
  constructor(server: string, reason: string) {
    super(`${server} failed: ${reason}`);
    this.reason = reason;
  }
}

/** `ECONNREFUSED 127.0.0.1:6379`, or what Redis answered. */
export function reasonOf(error: unknown): string {
  if (error instanceof RedisFailureError) return error.reason;
  const { lastNodeError, errors, code, address, port, message } = error as {
    readonly lastNodeError?: unknown;
    readonly errors?: readonly unknown[];
    readonly code?: string;
    readonly address?: string;
    readonly port?: number;
    readonly message?: string;
  };
  // Of a cluster none of whose nodes answers, and of a host with several addresses.
  const inner = lastNodeError ?? errors?.at(-1);
  if (inner !== undefined && inner !== null) return reasonOf(inner);
  if (code !== undefined) return address === undefined ? `${code} ${message}` : `${code} ${address}:${port}`;
  return message ?? String(error);
}
