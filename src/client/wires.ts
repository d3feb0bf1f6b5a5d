/** One of the APIs whose streams the client resumes. */
export interface Wire {
  /** The path of its requests, below `/v1` at a replica's root. */
  readonly path: string;
  /**
   * Whether the event with this payload is the last one of its answer: the end, or an error, which a replica sends only
   * after giving the run up.
   */
  isLast(payload: string): boolean;
}

/** Hardly any event contains one of these words, and parsing every event would cost more than everything else. */
const ofTypes = (...types: readonly unknown[]): Wire['isLast'] => {
  const words = types.map((type) => `"${type}"`);
  return (payload) => words.some((word) => payload.includes(word)) && types.includes(fieldsOf(payload)?.type);
};

const isLastChunk: Wire['isLast'] = (payload) => {
  if (payload.trim() === '[DONE]') return true;
  return payload.includes('"error"') && (fieldsOf(payload)?.error ?? null) !== null;
};

const RESPONSE_ENDS = ofTypes(
  'response.completed',
  'response.incomplete',
  'response.cancelled',
  'response.failed',
  'error',
);

/** After an error with its own object, `response.failed` still follows. */
const isLastOfResponse: Wire['isLast'] = (payload) =>
  RESPONSE_ENDS(payload) && !(payload.includes('"error"') && isAnnounced(payload));

function isAnnounced(payload: string): boolean {
  const { type, error } = fieldsOf(payload) ?? {};
  return type === 'error' && typeof error === 'object' && error !== null;
}

const WIRES: readonly Wire[] = [
  { path: '/chat/completions', isLast: isLastChunk },
  { path: '/completions', isLast: isLastChunk },
  { path: '/messages', isLast: ofTypes('message_stop', 'error') },
  { path: '/responses', isLast: isLastOfResponse },
];

/** The leftmost match is the longest one. */
const ENDING = new RegExp(`(?:/v1)?(${WIRES.map(({ path }) => path).join('|')})/?$`);

/** The wire of requests to this path, and the prefix before it; undefined if they're on none. */
export function wireAt(path: string): { readonly wire: Wire; readonly prefix: string } | undefined {
  const found = ENDING.exec(path);
  const wire = WIRES.find((each) => each.path === found?.[1]);
  return wire && { wire, prefix: path.slice(0, found?.index) };
}

/** The fields of a JSON document that the client reads; undefined if it isn't one. */
export function fieldsOf(
  text: string,
): { readonly type?: unknown; readonly error?: unknown; readonly stream?: unknown } | undefined {
  try {
    return (JSON.parse(text) as object | null) ?? undefined;
  } catch {
    return undefined;
  }
}
