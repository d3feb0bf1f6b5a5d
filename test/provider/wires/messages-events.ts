import type { ChunkDelta, ToolCallDelta } from '../deltas.ts';
import type { Envelope, EventStream, TokenUsage } from '../events.ts';
import type { BadFinish } from '../fault.ts';
import type { Utterance } from '../limits.ts';

interface Block {
  readonly type: 'text' | 'thinking' | 'tool_use';
  readonly pieces: string[];
  readonly call?: ToolCallDelta;
}

const STOP_REASONS: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
};

export const stopReason = (finish: string): string => STOP_REASONS[finish] ?? finish;

/** The provider's signature for its thinking; it encodes what was signed. */
export const signatureOf = (thinking: string): string => Buffer.from(thinking).toString('base64');
export const signedBy = (signature: string): string => Buffer.from(signature, 'base64').toString();

/** The name of an event is its type. */
export const messagesEvent = (payload: {
  readonly type: string;
  readonly [field: string]: unknown;
}): string => `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`;

export const MESSAGE_STOP = messagesEvent({ type: 'message_stop' });
export const PING = messagesEvent({ type: 'ping' });

/** `usage_in`: `finish_chunk` is the older format, which reports the input only at the beginning. */
export function messagesEvents(
  { deltas, finish }: Utterance,
  envelope: Envelope,
  usage: TokenUsage,
  usage_in: 'final' | 'finish_chunk' | 'none',
): EventStream {
  const input = inputOf(usage);
  const message = {
    ...messageOf(envelope),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...input, output_tokens: 1 },
  };
  const blocks = blocksOf(deltas).map(blockEvents);
  // The first ping follows the start of the first block.
  blocks[0]?.splice(1, 0, PING);
  const report = { ...(usage_in !== 'finish_chunk' && input), output_tokens: usage.completion_tokens };
  const delta = { stop_reason: stopReason(finish), stop_sequence: null };
  const finished = [
    messagesEvent({ type: 'message_start', message }),
    ...blocks.flat(),
    messagesEvent({ type: 'message_delta', delta, usage: report }),
  ];
  return { events: [...finished, MESSAGE_STOP], finished_after: finished.length };
}

export const messageOf = ({ id, model }: Envelope) => ({ id, type: 'message', role: 'assistant', model });

export const messagesBadFinish = (kind: BadFinish): string[] => {
  const delta = { stop_reason: kind.slice('finish_'.length), stop_sequence: null };
  return [messagesEvent({ type: 'message_delta', delta, usage: { output_tokens: 0 } }), MESSAGE_STOP];
};

/** An event whose JSON is cut off, but which ends properly as an event. */
export const messagesMalformed = (): string => {
  const delta = { type: 'text_delta', text: 'lost' };
  const event = messagesEvent({ type: 'content_block_delta', index: 0, delta });
  return `${event.slice(0, -6)}\n\n`;
};

/** `input_tokens` excludes cached tokens. */
export const inputOf = ({ prompt_tokens, cached = { read: 0, written: 0 } }: TokenUsage) => ({
  input_tokens: Math.max(1, prompt_tokens - cached.read - cached.written),
  cache_creation_input_tokens: cached.written,
  cache_read_input_tokens: cached.read,
});

/** The content blocks of a message that isn't streamed. */
export const contentOf = (deltas: readonly ChunkDelta[]): object[] =>
  blocksOf(deltas).map(({ type, pieces, call: begun }) => {
    const said = pieces.join('');
    if (type === 'text') return { type, text: said };
    if (type === 'thinking') return { type, thinking: said, signature: signatureOf(said) };
    const input = JSON.parse(said === '' ? '{}' : said) as unknown;
    return { type, id: begun?.id, name: begun?.function.name, input };
  });

/** Blocks come one after another, whatever the order of their deltas. */
function blocksOf(deltas: readonly ChunkDelta[]): Block[] {
  const blocks: Block[] = [];
  const say = (type: 'text' | 'thinking', piece: string) => {
    const last = blocks.at(-1);
    if (last?.type === type) last.pieces.push(piece);
    else blocks.push({ type, pieces: [piece] });
  };
  for (const { content, refusal, reasoning_content, reasoning, tool_calls } of deltas) {
    const thought = reasoning_content ?? reasoning;
    const text = content ?? refusal;
    if (thought !== undefined) say('thinking', thought);
    if (text !== undefined) say('text', text);
    if (tool_calls) call(blocks, tool_calls[0]);
  }
  return blocks;
}

function call(blocks: Block[], fragment: ToolCallDelta): void {
  const isOf = ({ call: begun }: Block) =>
    fragment.id === undefined ? begun?.index === fragment.index : begun?.id === fragment.id;
  const known = blocks.findLast((block) => block.call && isOf(block));
  const { arguments: piece } = fragment.function;
  if (known) known.pieces.push(piece);
  else blocks.push({ type: 'tool_use', pieces: piece === '' ? [] : [piece], call: fragment });
}

function blockEvents(block: Block, index: number): string[] {
  const delta = (said: object) => messagesEvent({ type: 'content_block_delta', index, delta: said });
  const { content_block, said } = toldOf(block);
  return [
    messagesEvent({ type: 'content_block_start', index, content_block }),
    ...said.map(delta),
    messagesEvent({ type: 'content_block_stop', index }),
  ];
}

function toldOf({ type, pieces, call: begun }: Block): { content_block: object; said: object[] } {
  switch (type) {
    case 'text':
      return {
        content_block: { type, text: '' },
        said: pieces.map((text) => ({ type: 'text_delta', text })),
      };
    case 'thinking':
      return {
        content_block: { type, thinking: '', signature: '' },
        said: [
          ...pieces.map((thinking) => ({ type: 'thinking_delta', thinking })),
          { type: 'signature_delta', signature: signatureOf(pieces.join('')) },
        ],
      };
    case 'tool_use': {
      const use = { type, id: begun?.id, name: begun?.function.name };
      // Some gateways send the arguments along with the start of the block.
      const isWhole = begun?.index === undefined && pieces.length > 0;
      if (isWhole)
        return { content_block: { ...use, input: JSON.parse(pieces.join('')) as unknown }, said: [] };
      return {
        content_block: { ...use, input: {} },
        said: pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
      };
    }
  }
}
