import { CHAT_TEMPLATE } from './chat-template.ts';
import { ggufFile, type Metadata, type Tensor } from './gguf.ts';

/**
 * A model with handmade weights that recites: each token it generates equals the one {@link RECITAL_DISTANCE} tokens
 * earlier. A token is one byte, so the prompt determines every byte of the answer, and the continuation of any prefix
 * is known.
 *
 * One layer with one head is enough. Each embedding has one dimension of its own and shares the dimension {@link
 * CONSTANT} with all others. Keys and queries see only the constant, hence only positions: RoPE rotates each pair of
 * dimensions by an angle proportional to the position, and the query is rotated back so that all pairs agree at exactly
 * one distance. The value is the token at that distance, and the output layer reads it.
 */
export const RECITAL_DISTANCE = 1024;

/** Ends a recital: if the source has this byte, the model generates its end-of-text token. */
export const END_OF_RECITAL = '\u0003';

const BYTES = 256;
const END_TOKEN = BYTES;
/** The result of a merge that no text uses. llama.cpp requires a list of merges, and an empty list has no type. */
const UNUSED_TOKEN = BYTES + 1;
const VOCABULARY = BYTES + 2;
/** The only head covers all dimensions: a power of two times five, with room for the vocabulary and the constant. */
const DIMENSIONS = 320;
const CONSTANT = DIMENSIONS - 1;
const FEED_FORWARD = 32;
/** The longest wavelength is 2π times this, so all distances in the context look different. */
const ROPE_BASE = 1000;
const CONTEXT_TOKENS = 16_384;

/** How far the score of the right distance exceeds those of its neighbours; softmax then selects only that one. */
const SHARPNESS = 30;
/** How much the recited token outweighs the current one. */
const LOUDNESS = 100;

const TOKEN_TYPE = { normal: 1, control: 3 };

export function recitingModel(): Buffer {
  return ggufFile(METADATA, {
    'token_embd.weight': matrix(VOCABULARY, DIMENSIONS, (token, dimension) =>
      dimension === token || dimension === CONSTANT ? 1 : 0,
    ),
    'blk.0.attn_norm.weight': ones(DIMENSIONS),
    'blk.0.attn_q.weight': seeingOnlyTheConstant(query),
    'blk.0.attn_k.weight': seeingOnlyTheConstant(key),
    'blk.0.attn_v.weight': matrix(DIMENSIONS, DIMENSIONS, (to, from) =>
      to === from && from < BYTES ? 1 : 0,
    ),
    'blk.0.attn_output.weight': matrix(DIMENSIONS, DIMENSIONS, (to, from) => (to === from ? LOUDNESS : 0)),
    'blk.0.ffn_norm.weight': ones(DIMENSIONS),
    'blk.0.ffn_gate.weight': matrix(FEED_FORWARD, DIMENSIONS, () => 0),
    'blk.0.ffn_up.weight': matrix(FEED_FORWARD, DIMENSIONS, () => 0),
    'blk.0.ffn_down.weight': matrix(DIMENSIONS, FEED_FORWARD, () => 0),
    'output_norm.weight': ones(DIMENSIONS),
    'output.weight': matrix(VOCABULARY, DIMENSIONS, (token, dimension) =>
      dimension === sourceOf(token) ? 1 : 0,
    ),
  });
}

/** The token with the embedding that makes the model generate `token`; undefined if no token does. */
function sourceOf(token: number): number | undefined {
  if (token === END_TOKEN) return END_OF_RECITAL.charCodeAt(0);
  return token === END_OF_RECITAL.charCodeAt(0) || token === UNUSED_TOKEN ? undefined : token;
}

/** The constant's value after RMS normalisation, for an embedding that has two ones and otherwise zeros. */
const CONSTANT_AFTER_NORM = Math.sqrt(DIMENSIONS / 2);
const PAIRS = DIMENSIONS / 2;
const angleOf = (pair: number): number => ROPE_BASE ** (-pair / PAIRS);
/** How much the agreement of all pairs drops at the next distance. */
const DROP = Array.from({ length: PAIRS }, (_, pair) => 1 - Math.cos(angleOf(pair))).reduce(
  (sum, one) => sum + one,
);
/** llama.cpp divides scores by the square root of the head's dimensions. */
const AMPLITUDE = (SHARPNESS / DROP) * Math.sqrt(DIMENSIONS);

/** From the last token before the answer, the first token of the source is one less than the distance away. */
const query = (dimension: number): number => {
  const turn = -angleOf(Math.floor(dimension / 2)) * (RECITAL_DISTANCE - 1);
  return (AMPLITUDE * (dimension % 2 === 0 ? Math.cos(turn) : Math.sin(turn))) / CONSTANT_AFTER_NORM;
};

const key = (dimension: number): number => (dimension % 2 === 0 ? 1 / CONSTANT_AFTER_NORM : 0);

const seeingOnlyTheConstant = (of: (dimension: number) => number): Tensor =>
  matrix(DIMENSIONS, DIMENSIONS, (to, from) => (from === CONSTANT ? of(to) : 0));

function matrix(rows: number, columns: number, at: (row: number, column: number) => number): Tensor {
  const values = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) values[row * columns + column] = at(row, column);
  return { rows, columns, values };
}

const ones = (columns: number): Tensor => matrix(1, columns, () => 1);

const METADATA: Readonly<Record<string, Metadata>> = {
  'general.architecture': { type: 'string', value: 'llama' },
  'general.name': { type: 'string', value: 'recital' },
  'llama.context_length': { type: 'uint32', value: CONTEXT_TOKENS },
  'llama.embedding_length': { type: 'uint32', value: DIMENSIONS },
  'llama.block_count': { type: 'uint32', value: 1 },
  'llama.feed_forward_length': { type: 'uint32', value: FEED_FORWARD },
  'llama.attention.head_count': { type: 'uint32', value: 1 },
  'llama.attention.head_count_kv': { type: 'uint32', value: 1 },
  'llama.attention.layer_norm_rms_epsilon': { type: 'float32', value: 1e-6 },
  'llama.rope.dimension_count': { type: 'uint32', value: DIMENSIONS },
  'llama.rope.freq_base': { type: 'float32', value: ROPE_BASE },
  'llama.vocab_size': { type: 'uint32', value: VOCABULARY },
  'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
  'tokenizer.ggml.pre': { type: 'string', value: 'gpt-2' },
  'tokenizer.ggml.tokens': { type: 'strings', value: [...byteNames(), '<|end|>', unusedMerge('')] },
  'tokenizer.ggml.token_type': {
    type: 'int32s',
    value: [...Array<number>(BYTES).fill(TOKEN_TYPE.normal), TOKEN_TYPE.control, TOKEN_TYPE.normal],
  },
  'tokenizer.ggml.merges': { type: 'strings', value: [unusedMerge(' ')] },
  'tokenizer.ggml.bos_token_id': { type: 'uint32', value: END_TOKEN },
  'tokenizer.ggml.eos_token_id': { type: 'uint32', value: END_TOKEN },
  'tokenizer.ggml.add_bos_token': { type: 'bool', value: false },
  'tokenizer.chat_template': { type: 'string', value: CHAT_TEMPLATE },
};

/**
 * The spelling of bytes in a byte-level vocabulary: printable ones as themselves, the others as characters from U+0100.
 */
function byteNames(): string[] {
  let others = 0;
  return Array.from({ length: BYTES }, (_, byte) => {
    const isPrintable =
      (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
    return String.fromCharCode(isPrintable ? byte : 0x100 + others++);
  });
}

/** Two bytes that never occur in UTF-8. */
function unusedMerge(separator: string): string {
  const names = byteNames();
  return `${names[0xfe]}${separator}${names[0xff]}`;
}
