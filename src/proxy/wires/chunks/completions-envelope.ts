import { isEmpty, isObject } from '../../../lib/json.ts';
import type { Delta, Usage } from '../../../plans/delta.ts';
import type { ChatChoice, ChatChunk } from './chat-chunk.ts';
import { ChunkEnvelope, choicesWith } from './chunk-envelope.ts';
import type { ChunkEvent } from './chunk-reader.ts';

/** The envelope of completion chunks, whose answer has neither a role nor calls. */
export class CompletionsEnvelope extends ChunkEnvelope {
  constructor(first: ChatChunk) {
    super(first, 'text_completion');
  }

  override payloadOf({ chunk, payload }: ChunkEvent): string {
    return this.fits(chunk) ? payload : this.adopted(chunk);
  }

  override finishOf(chunk: ChatChunk, _role: boolean, usage: Usage | undefined): string {
    const finish = { ...chunk, ...(usage && isObject(chunk.usage) && { usage }) };
    return this.adopted(finish, choicesWith(chunk, { text: '' }));
  }

  override textChunk(deltas: readonly Delta[]): string {
    let text = '';
    for (const delta of deltas) if (delta.kind === 'text') text += delta.text;
    return this.#chunk(text, null);
  }

  override toolChunk(): never {
    throw new Error('a completion has no tool calls');
  }

  override finishChunk(reason: string): string {
    return this.#chunk('', reason);
  }

  override emptyChunk(holdfast?: object): string {
    return this.chunkOf(choiceOf('', null), holdfast && { holdfast });
  }

  protected override isPlain({ choices }: ChatChunk): boolean {
    const [{ text, index: _index, ...rest }] = choices as [ChatChoice];
    return typeof text === 'string' && Object.values(rest).every(isEmpty);
  }

  #chunk(text: string, finish_reason: string | null): string {
    return this.chunkOf(choiceOf(text, finish_reason));
  }
}

const choiceOf = (text: string, finish_reason: string | null) => ({
  text,
  index: 0,
  logprobs: null,
  finish_reason,
});
