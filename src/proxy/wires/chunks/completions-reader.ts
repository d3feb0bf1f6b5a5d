import type { Delta } from '../../../plans/delta.ts';
import { isUnreadableText } from '../common/event-data.ts';
import type { ChatChoice } from './chat-chunk.ts';
import { ChunkReader } from './chunk-reader.ts';

/** Reads the events of one attempt on `/v1/completions`: choices have their text at the top, and no role. */
export class CompletionsReader extends ChunkReader {
  protected override said({ text }: ChatChoice): readonly Delta[] | undefined {
    if (isUnreadableText(text)) return undefined;
    return typeof text === 'string' && text !== '' ? [{ kind: 'text', text }] : [];
  }

  protected override hasRole(): boolean {
    return false;
  }
}
