/** How many bytes of each segment are still needed. */
export class LiveBytes {
  readonly #bytes = new Map<number, number>();

  of(segment: number): number {
    return this.#bytes.get(segment) ?? 0;
  }

  add(segment: number, bytes: number): void {
    this.#bytes.set(segment, this.of(segment) + bytes);
  }

  /** `places`: segment, offset and bytes of each place. */
  remove(places: readonly number[]): void {
    for (let at = 0; at < places.length; at += 3) {
      const segment = places[at] as number;
      const left = this.of(segment) - (places[at + 2] as number);
      if (left > 0) this.#bytes.set(segment, left);
      else this.#bytes.delete(segment);
    }
  }
}
