/** For this long after a failure, a replica isn't asked first, so not every new run has to find out by itself. */
const AVOID_MS = 10_000;

/** An endpoint's URL without `/v1` and slashes at its end; undefined if it can't be a replica's URL. */
export function rootOfEndpoint(endpoint: unknown): string | undefined {
  const url = typeof endpoint === 'string' && URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  // `fetch` refuses credentials, and a path can't follow a query or a fragment.
  if (url.username || url.password || url.search || url.hash) return undefined;
  return url.origin + url.pathname.replace(/(\/v1)?\/*$/, '');
}

/** The replicas' roots, and which replicas failed recently. All runs of one `fetch` share this. */
export class Endpoints {
  readonly #roots: readonly string[];
  readonly #failed_ms = new Map<string, number>();

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  /** The replica to send a request for `root` to first. */
  first(root: string): string {
    return this.hasFailed(root) ? this.after(root) : root;
  }

  /** The replica after `root`: the next one that hasn't failed recently, or simply the next. */
  after(root: string): string {
    const start = this.#roots.indexOf(root) + 1;
    const order = [...this.#roots.slice(start), ...this.#roots.slice(0, start)];
    return order.find((candidate) => !this.hasFailed(candidate)) ?? order[0] ?? root;
  }

  /** Recently. */
  hasFailed(root: string): boolean {
    return performance.now() - (this.#failed_ms.get(root) ?? Number.NEGATIVE_INFINITY) < AVOID_MS;
  }

  failed(root: string): void {
    this.#failed_ms.set(root, performance.now());
  }

  answered(root: string): void {
    this.#failed_ms.delete(root);
  }
}
