/** One of the APIs whose streams are resumed. */
export interface Wire {
  /** Of its requests, below `/v1` at the root of a replica. */
  readonly path: string;
  /**
   * Whether the event with this payload is the last one of its answer: the end, or an error, which a replica sends only
   * once it has given the run up.
   */
  isLast(payload: string): boolean;
}

/** Next to no event has any of these words, and parsing all would cost more than all the rest. */
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

/** After an error that has its own object, `response.failed` is still to come. */
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

/** What is found first is longest. */
const ENDING = new RegExp(`(?:/v1)?(${WIRES.map(({ path }) => path).join('|')})/?$`);

/** The wire that requests to this path are on, and what is before it; undefined if they are on none. */
export function wireAt(path: string): { readonly wire: Wire; readonly prefix: string } | undefined {
  const found = ENDING.exec(path);
  const wire = WIRES.find((each) => each.path === found?.[1]);
  return wire && { wire, prefix: path.slice(0, found?.index) };
}

/** The fields of a JSON document, as far as they are looked at; undefined for what is none. */
export function fieldsOf(
  text: string,
): { readonly type?: unknown; readonly error?: unknown; readonly stream?: unknown } | undefined {
  try {
    return (JSON.parse(text) as object | null) ?? undefined;
  } catch {
    return undefined;
  }
}
