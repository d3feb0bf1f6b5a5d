/** Instructions for the provider, sent as the text of the user message so that every proxy passes them on. */
export interface Script {
  /** 0: as fast as the connection allows. */
  readonly interval_us: number;
  /** Offset of this stream's events within the interval, so that streams aren't in step. */
  readonly phase_us: number;
  readonly events: number;
  /**
   * Distinguishes the requests of a benchmark. A proxy that recognises repeated requests would do more work for
   * identical ones, which different users hardly ever send.
   */
  readonly question: number;
}

export const FIRST_CONTENT = 'w';
export const LAST_CONTENT = 'total=';
const SEQUENCE_DIGITS = 8;
const TIME_DIGITS = 15;

/** `w00000012@000000123456789`: sequence number and send time at fixed positions, cheap to write and read. */
export function eventContent(sequence: number, sent_us: number): string {
  return `${FIRST_CONTENT}${String(sequence).padStart(SEQUENCE_DIGITS, '0')}@${String(sent_us).padStart(TIME_DIGITS, '0')}`;
}

/** `at` is the position of the `w` in `text`. */
export function sequenceAt(text: string, at: number): number {
  return Number(text.slice(at + 1, at + 1 + SEQUENCE_DIGITS));
}

export function sentAt(text: string, at: number): number {
  const start = at + 2 + SEQUENCE_DIGITS;
  return Number(text.slice(start, start + TIME_DIGITS));
}

/** `headers` are added to those that every request has. */
export function requestBytes(script: Script, headers: Readonly<Record<string, string>>): Buffer {
  const body = JSON.stringify({
    model: 'bench',
    stream: true,
    messages: [
      { role: 'system', content: 'You are a helpful assistant.' },
      { role: 'user', content: JSON.stringify(script) },
    ],
  });
  const lines = Object.entries({
    host: 'bench',
    authorization: 'Bearer bench',
    accept: 'text/event-stream',
    'content-type': 'application/json',
    ...headers,
    'content-length': Buffer.byteLength(body),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST /v1/chat/completions HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
}
