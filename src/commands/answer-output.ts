import { providerErrorIn } from '../interrupts/provider-error.ts';
import { isObject, parsedJson } from '../lib/json.ts';
import type { Delta } from '../plans/delta.ts';
import type { Wire } from '../proxy/wires/common/wire.ts';
import { type Output, printable, printableLines, printJsonLine } from './terminal.ts';

interface Call {
  readonly name: string;
  arguments: string;
}

/** Prints an answer as its events arrive. */
export interface AnswerOutput {
  add(seq: number, payload: string): void;
  /** Called after the last event. */
  end(): void;
}

/** One line of JSON per event. */
export const jsonAnswer: AnswerOutput = {
  add: (seq, payload) => printJsonLine({ seq, data: parsedJson(payload) ?? payload }),
  end: () => {},
};

/** Prints text as it arrives, and calls at the end on standard error. A file or pipe receives the exact text. */
export class TextAnswer implements AnswerOutput {
  readonly #reader;
  readonly #output: Output;
  readonly #aside: Output;
  readonly #calls: Call[] = [];
  #isLineOpen = false;

  constructor({ delivered }: Wire, output: Output, aside: Output) {
    this.#reader = delivered.reader();
    this.#output = output;
    this.#aside = aside;
  }

  add(_seq: number, payload: string): void {
    for (const delta of this.#reader.read(payload, this.#calls.length)?.deltas ?? []) this.#say(delta);
  }

  end(): void {
    if (this.#isLineOpen) this.#output.write('\n');
    for (const { name, arguments: json } of this.#calls)
      this.#aside.write(`tool call ${printable(name)}(${printable(json)})\n`);
  }

  #say(delta: Delta): void {
    switch (delta.kind) {
      case 'text':
      case 'refusal':
        this.#output.write(this.#output.isTTY ? printableLines(delta.text) : delta.text);
        if (delta.text !== '') this.#isLineOpen = this.#output.isTTY === true && !delta.text.endsWith('\n');
        return;
      case 'tool_start':
        this.#calls[delta.index] = { name: delta.name, arguments: '' };
        return;
      case 'tool_arguments': {
        const call = this.#calls[delta.index];
        if (call) call.arguments += delta.text;
      }
    }
  }
}

/** Why an answer wasn't finished, according to its error event. */
export function failureIn(payload: string): string {
  const document = parsedJson(payload);
  const inResponse = isObject(document) && isObject(document.response) ? document.response : document;
  return printable(providerErrorIn(inResponse)?.message || 'the answer was not finished');
}
