import { hash, type KeyObject } from 'node:crypto';

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;

/**
 * HMAC-SHA-256 (RFC 2104) of short texts. Every stored record carries one; `createHmac` makes a native object for each,
 * which costs more than the hashing and has to be collected, while the one-shot `hash` makes none.
 */
export class TextHmac {
  readonly #inner = Buffer.alloc(BLOCK_BYTES, 0x36);
  /** The outer block, and room for the inner digest. */
  readonly #outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, 0x5c);

  /** Throws `RangeError` for a key that is longer than a block. */
  constructor(key: KeyObject) {
    const bytes = key.export();
    if (bytes.length > BLOCK_BYTES)
      throw new RangeError(`a key of ${bytes.length} bytes; at most ${BLOCK_BYTES}`);
    for (const [at, byte] of bytes.entries()) {
      this.#inner.writeUInt8(byte ^ 0x36, at);
      this.#outer.writeUInt8(byte ^ 0x5c, at);
    }
  }

  /** In base64url. */
  digest(text: string): string {
    const message = Buffer.allocUnsafe(BLOCK_BYTES + Buffer.byteLength(text));
    this.#inner.copy(message);
    message.write(text, BLOCK_BYTES);
    this.#outer.write(hash('sha256', message), BLOCK_BYTES, 'hex');
    return hash('sha256', this.#outer, 'base64url');
  }
}
