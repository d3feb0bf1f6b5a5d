import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import { KeyedHash } from '../lib/keyed-hash.ts';
import type { Owner, RunId } from './store.ts';

/*
 * Sealed text is `<key id>.<base64url of: IV, ciphertext, tag>` in AES-256-GCM; a proof is `<key id>.<base64url of half
 * an HMAC-SHA-256>`. Both authenticate the place, so they are valid nowhere else.
 */

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const KEY_ID_BYTES = 6;
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** 132 bits of the HMAC. */
const PROOF_DIGITS = 22;
/** Length of a proof. */
export const PROOF_CHARACTERS = (KEY_ID_BYTES / 3) * 4 + 1 + PROOF_DIGITS;
const PROOF = /^[\w-]{8}\.[\w-]{22}$/;

/** Whether a proof is valid. `unknown`: it wasn't made with a configured key. */
export type Verdict = 'proven' | 'wrong' | 'unknown';

/** Encrypts stored data, or proves that this deployment stored it in exactly this place. */
export interface Seal {
  /** Whether content is encrypted. Otherwise it is stored in the clear, with a proof. */
  readonly encrypts: boolean;
  /** Whether data without a proof, from an older version or another writer, is accepted. */
  readonly acceptsUnproven: boolean;
  seal(text: string, place?: string): string;
  /** Undefined if no key fits, the text was altered, or it was sealed for another place. */
  open(sealed: string, place?: string): string | undefined;
  /** Returns a proof, {@link PROOF_CHARACTERS} long. */
  prove(text: string, place: string): string;
  verify(text: string, proof: string, place: string): Verdict;
  /** The same keys for one run or note. Text sealed for it can't be opened for another subject, in any place. */
  for(subject: string): Seal;
  /** The same seal for one part of the subject, whose name becomes part of every place. */
  within(context: string): Seal;
  /** The same seal, accepting nothing unproven. */
  strict(): Seal;
  /** Keyed digests that can't be guessed without the key, one per key, starting with the sealing key. */
  digests(text: string): readonly Buffer[];
  /** Everything another thread needs to create the same seal. */
  readonly material: SealMaterial;
}

/** Derived from a configured secret. Printing the key objects doesn't reveal their content. */
export interface SealingKey {
  /** Stored with everything the key sealed, so that the right key is found at once. */
  readonly id: string;
  readonly key: KeyObject;
}

export interface SealMaterial {
  /** The first key seals and proves; all of them open and verify. */
  readonly keys: readonly SealingKey[];
  readonly encrypts: boolean;
  readonly acceptsUnproven: boolean;
}

/** `secrets`: the first seals, all of them open. They must be random, because nothing slows down guessing. */
export const createSeal = (secrets: readonly string[], acceptsUnproven: boolean = false): Seal =>
  sealWith({
    keys: secrets.map((secret) => deriveKey(secret, 'sealing key')),
    encrypts: true,
    acceptsUnproven,
  });

/** Proves stored data with a key derived from the deployment's secret. Encrypts nothing. */
export const createProofs = (secret: string, acceptsUnproven: boolean = false): Seal =>
  sealWith({ keys: [deriveKey(secret, 'proof key')], encrypts: false, acceptsUnproven });

/** A seal from already derived keys. */
export const sealWith = (material: SealMaterial): Seal => new KeyRing(material, 'holdfast');

/** The seal for one epoch of a run, bound to its owner and this epoch. `strict`: accepts nothing unproven. */
export const epochSeal = (
  seal: Seal | undefined,
  run: RunId,
  owner: Owner,
  epoch: number,
  strict: boolean = true,
): Seal | undefined => (strict ? seal?.strict() : seal)?.for(run).within(`${owner} ${epoch}`);

function deriveKey(secret: string, purpose: string): SealingKey {
  const derive = (info: string, bytes: number) => Buffer.from(hkdfSync('sha256', secret, '', info, bytes));
  return {
    id: derive(`holdfast ${purpose} id`, KEY_ID_BYTES).toString('base64url'),
    key: createSecretKey(derive(`holdfast ${purpose}`, KEY_BYTES)),
  };
}

/**
 * Every subject has its own cipher keys. That binds sealed text to its subject and keeps the number of random IVs per
 * key far below 2^32, after which they might repeat. A proof includes its subject instead, so that without encryption a
 * run needs no keys of its own.
 */
class KeyRing implements Seal {
  readonly material: SealMaterial;
  readonly #subject: string;
  readonly #context: string;
  /** Keyed by the id of the parent key; derived on demand. */
  #cipher_keys: Map<string, KeyObject> | undefined;

  constructor(material: SealMaterial, subject: string, context = '') {
    this.material = material;
    this.#subject = subject;
    this.#context = context;
  }

  get encrypts(): boolean {
    return this.material.encrypts;
  }

  get acceptsUnproven(): boolean {
    return this.material.acceptsUnproven;
  }

  seal(text: string, place = ''): string {
    const key = this.#first();
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#cipherKey(key), iv);
    cipher.setAAD(Buffer.from(this.#placed(place)));
    const ciphertext = [cipher.update(text, 'utf8'), cipher.final()];
    return `${key.id}.${Buffer.concat([iv, ...ciphertext, cipher.getAuthTag()]).toString('base64url')}`;
  }

  open(sealed: string, place = ''): string | undefined {
    const [id = '', content = ''] = sealed.split('.', 2);
    const key = this.#find(id);
    const bytes = Buffer.from(content, 'base64url');
    if (!key || bytes.length < IV_BYTES + TAG_BYTES) return undefined;
    const text = this.#decipher(key, bytes, this.#placed(place));
    // Older versions sealed for a run, not for a place in it.
    return text === undefined && this.acceptsUnproven ? this.#decipher(key, bytes, '') : text;
  }

  prove(text: string, place: string): string {
    const key = this.#first();
    return `${key.id}.${this.#proof(key, text, place)}`;
  }

  verify(text: string, proof: string, place: string): Verdict {
    const key = PROOF.test(proof) ? this.#find(proof.slice(0, proof.indexOf('.'))) : undefined;
    if (!key) return 'unknown';
    const right = `${key.id}.${this.#proof(key, text, place)}`;
    return timingSafeEqual(Buffer.from(proof), Buffer.from(right)) ? 'proven' : 'wrong';
  }

  for(subject: string): Seal {
    return new KeyRing(this.material, subject);
  }

  within(context: string): Seal {
    return new KeyRing(this.material, this.#subject, context);
  }

  strict(): Seal {
    if (!this.acceptsUnproven) return this;
    const material = { ...this.material, acceptsUnproven: false };
    return new KeyRing(material, this.#subject, this.#context);
  }

  digests(text: string): readonly Buffer[] {
    return this.material.keys.map((key) => createHmac('sha256', this.#cipherKey(key)).update(text).digest());
  }

  #decipher(key: SealingKey, bytes: Buffer, placed: string): string | undefined {
    const tag_start = bytes.length - TAG_BYTES;
    const decipher = createDecipheriv(CIPHER, this.#cipherKey(key), bytes.subarray(0, IV_BYTES));
    decipher.setAAD(Buffer.from(placed));
    decipher.setAuthTag(bytes.subarray(tag_start));
    try {
      return decipher.update(bytes.subarray(IV_BYTES, tag_start), undefined, 'utf8') + decipher.final('utf8');
    } catch {
      return undefined;
    }
  }

  /**
   * Neither subject nor place contains a line break, so the fields can't be confused. Cipher keys are derived from
   * texts without any, so they never equal a proof.
   */
  #proof({ key }: SealingKey, text: string, place: string): string {
    return KeyedHash.of(key)
      .digest(`${this.#subject}\n${this.#placed(place)}\n${text}`)
      .slice(0, PROOF_DIGITS);
  }

  /** Must not contain a line break, which is the separator. */
  #placed(place: string): string {
    return this.#context === '' ? place : `${this.#context} ${place}`;
  }

  #first(): SealingKey {
    const [first] = this.material.keys;
    if (!first) throw new Error('there is no key to seal with');
    return first;
  }

  #find(id: string): SealingKey | undefined {
    return this.material.keys.find((known) => known.id === id);
  }

  /** Cached as a key object, because setting up a cipher from raw bytes takes three times as long. */
  #cipherKey({ id, key }: SealingKey): KeyObject {
    this.#cipher_keys ??= new Map();
    const known = this.#cipher_keys.get(id);
    if (known) return known;
    const derived = createSecretKey(createHmac('sha256', key).update(this.#subject).digest());
    this.#cipher_keys.set(id, derived);
    return derived;
  }
}
