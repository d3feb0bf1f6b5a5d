import { StoreConfigurationError } from '../store.ts';

interface Refusal {
  readonly pattern: RegExp;
  readonly remedy: string;
  /** Retrying can't help. */
  readonly permanent: boolean;
}

const REFUSALS: readonly Refusal[] = [
  {
    pattern: /^(WRONGPASS|NOAUTH|ERR AUTH|ERR invalid password)/,
    remedy: 'check the user and the password in the URL',
    permanent: true,
  },
  {
    pattern: /^(ERR DB index|ERR invalid DB index|ERR SELECT)/,
    remedy: 'choose another database with the number at the end of the URL',
    permanent: true,
  },
  {
    pattern: /^NOPERM/,
    remedy: 'grant this user the commands and keys that docs/stores.md lists',
    permanent: true,
  },
  { pattern: /^MOVED/, remedy: 'write redis+cluster://… for a cluster', permanent: true },
  {
    pattern: /^ERR This instance has cluster support disabled/,
    remedy: 'write redis://… for a single server',
    permanent: true,
  },
  {
    pattern: /CERT|SIGNATURE|ISSUER/,
    remedy: 'have Node.js trust its certificate authority with NODE_EXTRA_CA_CERTS=FILE',
    permanent: true,
  },
  { pattern: /^ENOTFOUND/, remedy: 'check the host in the URL', permanent: false },
  {
    pattern: /^READONLY/,
    remedy: 'configure the master, or its sentinels with redis+sentinel://…',
    permanent: false,
  },
  { pattern: /^OOM/, remedy: 'give it more memory', permanent: false },
];

const UNREACHABLE =
  'start it, correct the URL, or serve without checkpoints meanwhile with checkpoint.on_unreachable: warn';

/** Redis isn't usable yet. */
export class UnreachableRedisError extends StoreConfigurationError {}

/** Whether a retry can't succeed. */
export const isPermanent = (error: unknown): boolean => refusalIn(reasonOf(error))?.permanent === true;

/** `name`: the server, without user and password. */
export function refusalOf(name: string, error: unknown): StoreConfigurationError {
  if (error instanceof StoreConfigurationError) return error;
  const reason = reasonOf(error);
  const known = refusalIn(reason);
  const message = `checkpoint.store: ${name} cannot be used (${reason}); ${known?.remedy ?? UNREACHABLE}`;
  return known?.permanent ? new StoreConfigurationError(message) : new UnreachableRedisError(message);
}

const refusalIn = (reason: string): Refusal | undefined =>
  REFUSALS.find(({ pattern }) => pattern.test(reason));

/** Redis was unreachable or refused a command. Unlike the client's errors, this one doesn't contain the command. */
export class RedisFailureError extends Error {
  override readonly name = 'RedisFailureError';
  readonly reason: string;

  /** `server`: its URL without user and password. */
  constructor(server: string, reason: string) {
    super(`${server} failed: ${reason}`);
    this.reason = reason;
  }
}

/** `ECONNREFUSED 127.0.0.1:6379`, or the error that Redis returned. */
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
  // Nested errors come from a cluster in which no node answers, and from a host with several addresses.
  const inner = lastNodeError ?? errors?.at(-1);
  if (inner !== undefined && inner !== null) return reasonOf(inner);
  if (code !== undefined) return address === undefined ? `${code} ${message}` : `${code} ${address}:${port}`;
  return message ?? String(error);
}
