import type { Shown } from '../judge.ts';

interface OpenCall {
  name: string;
  arguments: string;
  isClosed: boolean;
}

/** What an application shows while an answer arrives: the deltas, joined as they come. */
export class Screen {
  readonly #progressed: () => void;
  readonly #calls = new Map<string | number, OpenCall>();
  #text = '';
  /** In the words of chat completions. */
  finish: string | undefined;
  /** The answer says itself that it failed. */
  failed = false;

  constructor(progressed: () => void) {
    this.#progressed = progressed;
  }

  text(piece: string | null | undefined): void {
    if (!piece) return;
    this.#text += piece;
    this.#progressed();
  }

  /** `key` is what the wire knows the call by. */
  call(key: string | number, name: string | undefined, piece: string | undefined): void {
    const call = this.#calls.get(key) ?? { name: '', arguments: '', isClosed: false };
    this.#calls.set(key, call);
    call.name += name ?? '';
    call.arguments += piece ?? '';
    if (name || piece) this.#progressed();
  }

  /** The wire says that the call is whole. */
  closeCall(key: string | number): void {
    const call = this.#calls.get(key);
    if (call) call.isClosed = true;
  }

  /** No application makes a call that its wire never closed in an answer that is complete. */
  dropOpenCalls(): void {
    for (const [key, { isClosed }] of this.#calls) if (!isClosed) this.#calls.delete(key);
  }

  get shown(): Shown {
    const calls = [...this.#calls.values()].map(({ name, arguments: json }) => ({ name, arguments: json }));
    return { text: this.#text, calls };
  }
}
