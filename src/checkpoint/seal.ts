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
import type { Owner, RunId } from './store.ts';

/*
 * Sealed text is `<id of the key>.<base64url of: IV, ciphertext, tag>`, in AES-256-GCM; a proof is `<id of the key>.<base64url
 * of half an HMAC-SHA-256>`. Both hold for one place alone, which is part of what is authenticated.
 */

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const KEY_ID_BYTES = 6;
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** 132 bits of the HMAC. */
const PROOF_DIGITS = 22;
/** Of a proof. */
export const PROOF_CHARACTERS = (KEY_ID_BYTES / 3) * 4 + 1 + PROOF_DIGITS;
const PROOF = /^[\w-]{8}\.[\w-]{22}$/;

/** Whether a proof holds; `unknown`: it is none of a key that is configured. */
export type Verdict = 'proven' | 'wrong' | 'unknown';

/** Encrypts what is stored, or proves that this deployment has stored it, there and nowhere else. */
export interface Seal {
  /** Whether content is encrypted; otherwise it is stored as it is, with a proof. */
  readonly encrypts: boolean;
  /** Whether what was stored without a proof, by an older version or another writer, is read. */
  readonly acceptsUnproven: boolean;
  seal(text: string, place?: string): string;
  /** Undefined when no key fits, when the text was altered, or when it was sealed for something else. */
  open(sealed: string, place?: string): string | undefined;
  /** {@link PROOF_CHARACTERS} long. */
  prove(text: string, place: string): string;
  verify(text: string, proof: string, place: string): Verdict;
  /** The same keys for one run or note: what is sealed for it can be opened for nothing else, in its place or not. */
  for(subject: string): Seal;
  /** The same for one part of the subject: its name belongs to every place. */
  within(context: string): Seal;
  /** The same that accepts nothing unproven. */
  strict(): Seal;
  /** A digest that cannot be guessed without the key, for each key: first that of the key that seals. */
  digests(text: string): readonly Buffer[];
  /** What another thread needs to make the same seal. */
  readonly material: SealMaterial;
}

/** Derived from a configured secret. The key objects do not show their content when they are printed. */
export interface SealingKey {
  /** Stored with everything the key sealed, so that the right one is found at once. */
  readonly id: string;
  readonly key: KeyObject;
}

export interface SealMaterial {
  /** The first seals and proves, all of them open and verify. */
  readonly keys: readonly SealingKey[];
  readonly encrypts: boolean;
  readonly acceptsUnproven: boolean;
}

/** `secrets`: the first seals, all of them open. They must be random: nothing slows down guessing. */
export const createSeal = (secrets: readonly string[], acceptsUnproven: boolean = false): Seal =>
  sealWith({
    keys: secrets.map((secret) => deriveKey(secret, 'sealing key')),
    encrypts: true,
    acceptsUnproven,
  });

/** Proves what is stored with a key derived from the secret of the deployment, and encrypts nothing. */
export const createProofs = (secret: string, acceptsUnproven: boolean = false): Seal =>
  sealWith({ keys: [deriveKey(secret, 'proof key')], encrypts: false, acceptsUnproven });

/** The seal of keys that were derived already. */
export const sealWith = (material: SealMaterial): Seal => new KeyRing(material, 'holdfast');

/** What one epoch of a run stores is sealed for its owner and for this epoch. `strict`: accepts nothing unproven. */
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
 * Every subject has cipher keys of its own. That binds what is sealed to it, and keeps the number of random IVs per key
 * far below the 2^32 after which they might repeat. A proof names its subject instead: where nothing is encrypted, a run
 * has no keys.
 */
class KeyRing implements Seal {
  readonly material: SealMaterial;
  readonly #subject: string;
  readonly #context: string;
  /** By the id of the key they are derived from; made when one is needed. */
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
    // Older versions have sealed for a run alone, not for a place in it.
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

  /** Neither the subject nor the place has a line break. Cipher keys are derived from texts without any. */
  #proof({ key }: SealingKey, text: string, place: string): string {
    return createHmac('sha256', key)
      .update(`${this.#subject}\n${this.#placed(place)}\n${text}`)
      .digest('base64url')
      .slice(0, PROOF_DIGITS);
  }

  /** Without a line break, which ends it. */
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

  /** A key object, because a cipher takes three times as long to set up with the bytes. */
  #cipherKey({ id, key }: SealingKey): KeyObject {
    this.#cipher_keys ??= new Map();
    const known = this.#cipher_keys.get(id);
    if (known) return known;
    const derived = createSecretKey(createHmac('sha256', key).update(this.#subject).digest());
    this.#cipher_keys.set(id, derived);
    return derived;
  }
}
