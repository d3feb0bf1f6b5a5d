const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Reads one HTTP/1.1 response with a chunked body of server-sent events. Far cheaper than a full client, so that the
 * load doesn't dominate the measurement.
 */
export class ResponseReader {
  /** The terminating chunk and the empty line after it have arrived. */
  complete: boolean = false;
  #isLastChunk: boolean = false;
  #head = '';
  #inBody: boolean = false;
  #sizeLine = '';
  #chunkRemaining = 0;
  #carry = '';
  readonly #onEvent: (event: string) => void;

  /** `onEvent` receives each event as latin1, without its blank line. */
  constructor(onEvent: (event: string) => void) {
    this.#onEvent = onEvent;
  }

  feed(bytes: Buffer): void {
    let at = this.#inBody ? 0 : this.#readHead(bytes);
    while (at < bytes.length && !this.complete) {
      at = this.#chunkRemaining > 0 ? this.#readData(bytes, at) : this.#readSize(bytes, at);
    }
  }

  #readHead(bytes: Buffer): number {
    const known = this.#head.length;
    this.#head += bytes.toString('latin1');
    const end = this.#head.indexOf('\r\n\r\n');
    if (end === -1) return bytes.length;
    const head = this.#head.slice(0, end);
    if (!head.startsWith('HTTP/1.1 200 '))
      throw new Error(`unexpected answer: ${JSON.stringify(this.#head.slice(0, 1000))}`);
    if (!/^transfer-encoding: chunked$/im.test(head)) throw new Error(`not a chunked answer: ${head}`);
    this.#head = '';
    this.#inBody = true;
    return end + 4 - known;
  }

  /** Also skips trailers and the line end after a chunk's data, which looks like an empty size line. */
  #readSize(bytes: Buffer, start: number): number {
    let at = start;
    for (; at < bytes.length; at += 1) {
      const byte = bytes[at] ?? 0;
      if (byte === CARRIAGE_RETURN) continue;
      if (byte !== LINE_FEED) {
        this.#sizeLine += String.fromCharCode(byte);
        continue;
      }
      const line = this.#sizeLine;
      this.#sizeLine = '';
      if (this.#isLastChunk) this.complete = line === '';
      else if (line !== '') {
        this.#chunkRemaining = Number.parseInt(line, 16);
        this.#isLastChunk = this.#chunkRemaining === 0;
      }
      if (this.complete || this.#chunkRemaining > 0) return at + 1;
    }
    return at;
  }

  #readData(bytes: Buffer, start: number): number {
    const end = Math.min(bytes.length, start + this.#chunkRemaining);
    this.#chunkRemaining -= end - start;
    const text = this.#carry + bytes.toString('latin1', start, end);
    let from = 0;
    for (let blank = text.indexOf('\n\n'); blank !== -1; blank = text.indexOf('\n\n', from)) {
      this.#onEvent(text.slice(from, blank));
      from = blank + 2;
    }
    this.#carry = text.slice(from);
    return end;
  }
}
