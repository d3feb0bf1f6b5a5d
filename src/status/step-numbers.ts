/**
 * The numbers of a task's steps, so that a step that several processes have seen counts once. A task has at most 10,000 steps,
 * so a set takes 1250 bytes at most.
 */
export class StepNumbers {
  /** Step 1 is the lowest bit of the first byte. */
  #bits = Buffer.alloc(0);

  /** Those that are in any of these sets, which are written as `text`. */
  static union(texts: readonly string[]): StepNumbers {
    const all = new StepNumbers();
    for (const text of texts)
      for (const [index, bits] of Buffer.from(text, 'base64').entries()) all.#set(index, bits);
    return all;
  }

  add(number: number): void {
    this.#set(Math.floor((number - 1) / 8), 1 << ((number - 1) % 8));
  }

  get size(): number {
    let size = 0;
    for (const byte of this.#bits) for (let bits = byte; bits > 0; bits &= bits - 1) size++;
    return size;
  }

  get text(): string {
    return this.#bits.toString('base64');
  }

  #set(index: number, bits: number): void {
    const missing = index + 1 - this.#bits.length;
    if (missing > 0) this.#bits = Buffer.concat([this.#bits, Buffer.alloc(missing)]);
    this.#bits.writeUInt8(this.#bits.readUInt8(index) | bits, index);
  }
}
