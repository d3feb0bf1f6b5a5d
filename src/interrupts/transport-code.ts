/** The code of an error on whose whole `cause` chain no code was found. */
const UNKNOWN_TRANSPORT_CODE = 'UNKNOWN';

/** Deep enough for every real chain; a limit because the errors are made by others. */
const ERRORS_MAX = 32;

/**
 * From most to least telling. The operating system and TLS know why a connection broke; HTTP layers know how;
 * undici's own wrappers often only know that it did.
 */
const RANKS: readonly RegExp[] = [
  // Wraps whatever its address attempts ran into, and says which limit it was.
  /^UND_ERR_CONNECT_TIMEOUT$/,
  /^(ERR_SSL_|ERR_TLS_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH$)/,
  /^E(?!RR_)[A-Z0-9_]+$/,
  /^(ERR_HTTP2_|HPE_)/,
  /^(?!UND_ERR_(SOCKET|INFO|ABORTED)$|UND_ERR$|ABORT_ERR$)/,
  /^/,
];

/**
 * The most telling error code (`ECONNRESET`, `ERR_HTTP2_STREAM_ERROR`, `UND_ERR_SOCKET`, …) of an error, its
 * causes and, for an AggregateError, its members; of equals the outermost. `UNKNOWN` when there is none.
 * Messages are never looked at. undici's parser errors lost their codes in version 8: they are `HPE_UNKNOWN`.
 */
export function transportCode(error: unknown): string {
  const codes = codesOf(error);
  for (const rank of RANKS) {
    const code = codes.find((candidate) => rank.test(candidate));
    if (code !== undefined) return code;
  }
  return UNKNOWN_TRANSPORT_CODE;
}

function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  const seen = new Set<unknown>([error]);
  // A set iterates over what is added on the way: breadth first, every error once.
  for (const candidate of seen) {
    if (typeof candidate !== 'object' || candidate === null) continue;
    const { name, code, cause, errors } = candidate as Record<'name' | 'code' | 'cause' | 'errors', unknown>;
    if (typeof code === 'string' && code !== '') codes.push(code);
    else if (name === 'HTTPParserError') codes.push('HPE_UNKNOWN');
    for (const inner of [cause, ...(Array.isArray(errors) ? errors : [])]) {
      if (seen.size < ERRORS_MAX) seen.add(inner);
    }
  }
  return codes;
}
