import { hash } from 'node:crypto';

/** Of one upstream; what was needed longest ago is forgotten. A session of a few hundred turns has as many thoughts. */
const SEALS_MAX = 20_000;

/**
 * Thoughts that upstreams do not take back, because another provider has sealed them. Clients send them again with every
 * request of the conversation, among those that the upstream has sealed itself.
 */
export class RefusedThoughts {
  /** Digests of what seals them, by upstream: these come from the configuration, which bounds their number. */
  readonly #seals = new Map<string, Set<string>>();

  /** `seal`: a signature, or what is encrypted. Without one, nothing is remembered. */
  remember(upstream: string, seal: string): void {
    if (seal === '') return;
    const seals = this.#seals.get(upstream) ?? new Set();
    this.#seals.set(upstream, seals);
    refresh(seals, digestOf(seal));
    const [oldest] = seals;
    if (seals.size > SEALS_MAX && oldest !== undefined) seals.delete(oldest);
  }

  /** Which of all thoughts the upstream refuses; `undefined` where none is known. */
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

/** Makes it the youngest. */
function refresh(seals: Set<string>, digest: string): void {
  seals.delete(digest);
  seals.add(digest);
}
