import { hash } from 'node:crypto';

/** Per upstream; the least recently needed is dropped. A session of a few hundred turns has as many thoughts. */
const SEALS_MAX = 20_000;

/**
 * Thoughts that upstreams don't accept back because another provider sealed them. Clients resend them with every
 * request of the conversation, mixed with the upstream's own.
 */
export class RefusedThoughts {
  /** Digests of the seals by upstream; the configuration bounds the number of upstreams. */
  readonly #seals = new Map<string, Set<string>>();

  /** `seal`: a signature or encrypted content. Empty seals are ignored. */
  remember(upstream: string, seal: string): void {
    if (seal === '') return;
    const seals = this.#seals.get(upstream) ?? new Set();
    this.#seals.set(upstream, seals);
    refresh(seals, digestOf(seal));
    const [oldest] = seals;
    if (seals.size > SEALS_MAX && oldest !== undefined) seals.delete(oldest);
  }

  /** A test for thoughts that the upstream refuses; `undefined` if none are known. */
  of(upstream: string): ((seal: string) => boolean) | undefined {
    const seals = this.#seals.get(upstream);
    if (!seals) return undefined;
    return (seal) => {
      const digest = digestOf(seal);
      const isRefused = seals.has(digest);
      if (isRefused) refresh(seals, digest);
      return isRefused;
    };
  }
}

const digestOf = (seal: string): string => hash('sha256', seal, 'base64url');

/** Marks it as most recently needed. */
function refresh(seals: Set<string>, digest: string): void {
  seals.delete(digest);
  seals.add(digest);
}
