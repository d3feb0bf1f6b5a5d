import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

/*
 * Sealed text is `<id of the key>.<base64url of: IV, ciphertext, tag>`, in AES-256-GCM.
 */

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const KEY_ID_BYTES = 6;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts what is stored. */
export interface Seal {
  seal(text: string): string;
  /** Undefined when no key fits, when the text was altered, or when it was sealed for something else. */
  open(sealed: string): string | undefined;
  /** The same keys for one run or note: what is sealed for it can be opened for nothing else, in its place or not. */
  for(subject: string): Seal;
  /** A digest that cannot be guessed without the key, for each key: first that of the key that seals. */
  digests(text: string): readonly Buffer[];
  /** What another thread needs to make the same seal. */
  readonly keys: readonly SealingKey[];
}

/** Derived from a configured secret. The key objects do not show their content when they are printed. */
export interface SealingKey {
  /** Stored with everything the key sealed, so that the right one is found at once. */
  readonly id: string;
  readonly key: KeyObject;
}

/** `secrets`: the first seals, all of them open. They must be random: nothing slows down guessing. */
export const createSeal = (secrets: readonly string[]): Seal => sealWith(secrets.map(deriveKey));

/** The seal of keys that were derived already. */
export const sealWith = (keys: readonly SealingKey[]): Seal => new KeyRing(keys, 'holdfast');

function deriveKey(secret: string): SealingKey {
  const derive = (info: string, bytes: number) => Buffer.from(hkdfSync('sha256', secret, '', info, bytes));
  return {
    id: derive('holdfast sealing key id', KEY_ID_BYTES).toString('base64url'),
    key: createSecretKey(derive('holdfast sealing key', KEY_BYTES)),
  };
}

/**
 * Every subject has keys of its own. That binds what is sealed to it, and keeps the number of random IVs per key
 * far below the 2^32 after which they might repeat.
 */
class KeyRing implements Seal {
  readonly keys: readonly SealingKey[];
  readonly #subject: string;
  readonly #subject_keys = new Map<string, KeyObject>();

  constructor(keys: readonly SealingKey[], subject: string) {
    this.keys = keys;
    this.#subject = subject;
  }

  seal(text: string): string {
    const [first] = this.keys;
    if (!first) throw new Error('there is no key to seal with');
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#keyOf(first), iv);
    const ciphertext = [cipher.update(text, 'utf8'), cipher.final()];
    return `${first.id}.${Buffer.concat([iv, ...ciphertext, cipher.getAuthTag()]).toString('base64url')}`;
  }

  open(sealed: string): string | undefined {
    const [id, content = ''] = sealed.split('.', 2);
    const key = this.keys.find((known) => known.id === id);
    const bytes = Buffer.from(content, 'base64url');
    if (!key || bytes.length < IV_BYTES + TAG_BYTES) return undefined;
    const tag_start = bytes.length - TAG_BYTES;
    const decipher = createDecipheriv(CIPHER, this.#keyOf(key), bytes.subarray(0, IV_BYTES));
    decipher.setAuthTag(bytes.subarray(tag_start));
    try {
      return decipher.update(bytes.subarray(IV_BYTES, tag_start), undefined, 'utf8') + decipher.final('utf8');
    } catch {
      return undefined;
    }
  }

  for(subject: string): Seal {
    return new KeyRing(this.keys, subject);
  }

  digests(text: string): readonly Buffer[] {
    return this.keys.map((key) => createHmac('sha256', this.#keyOf(key)).update(text).digest());
  }

  /** A key object, because a cipher takes three times as long to set up with the bytes. */
  #keyOf({ id, key }: SealingKey): KeyObject {
    const known = this.#subject_keys.get(id);
    if (known) return known;
    const derived = createSecretKey(createHmac('sha256', key).update(this.#subject).digest());
    this.#subject_keys.set(id, derived);
    return derived;
  }
}
