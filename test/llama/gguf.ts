/** The metadata types that a small model needs. */
export type Metadata =
  | { readonly type: 'uint32'; readonly value: number }
  | { readonly type: 'float32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'int32s'; readonly value: readonly number[] };

/** Weights in rows: `values[row * columns + column]`; a vector has one row. */
export interface Tensor {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float32Array;
}

const VERSION = 3;
const ALIGNMENT_BYTES = 32;
const TYPE_CODES = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;
const F32 = 0;

/** Encodes a file in the format that llama.cpp loads, with all weights as 32-bit floats. */
export function ggufFile(
  metadata: Readonly<Record<string, Metadata>>,
  tensors: Readonly<Record<string, Tensor>>,
): Buffer {
  const header: Buffer[] = [
    Buffer.from('GGUF'),
    uint32(VERSION),
    uint64(Object.keys(tensors).length),
    uint64(Object.keys(metadata).length),
  ];
  for (const [key, entry] of Object.entries(metadata)) header.push(string(key), metadataValue(entry));
  const weights: Buffer[] = [];
  let offset = 0;
  for (const [name, { rows, columns, values }] of Object.entries(tensors)) {
    const dimensions = rows === 1 ? [columns] : [columns, rows];
    header.push(
      string(name),
      uint32(dimensions.length),
      ...dimensions.map(uint64),
      uint32(F32),
      uint64(offset),
    );
    const bytes = padded(Buffer.from(values.buffer, values.byteOffset, values.byteLength));
    weights.push(bytes);
    offset += bytes.length;
  }
  return Buffer.concat([padded(Buffer.concat(header)), ...weights]);
}

function metadataValue(entry: Metadata): Buffer {
  switch (entry.type) {
    case 'uint32':
      return Buffer.concat([uint32(TYPE_CODES.uint32), uint32(entry.value)]);
    case 'float32':
      return Buffer.concat([uint32(TYPE_CODES.float32), float32(entry.value)]);
    case 'bool':
      return Buffer.concat([uint32(TYPE_CODES.bool), Buffer.from([entry.value ? 1 : 0])]);
    case 'string':
      return Buffer.concat([uint32(TYPE_CODES.string), string(entry.value)]);
    case 'strings':
      return array(TYPE_CODES.string, entry.value.map(string));
    case 'int32s':
      return array(TYPE_CODES.int32, entry.value.map(int32));
  }
}

const array = (code: number, items: readonly Buffer[]): Buffer =>
  Buffer.concat([uint32(TYPE_CODES.array), uint32(code), uint64(items.length), ...items]);

const string = (text: string): Buffer => {
  const bytes = Buffer.from(text);
  return Buffer.concat([uint64(bytes.length), bytes]);
};

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

function float32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

const padded = (bytes: Buffer): Buffer =>
  Buffer.concat([
    bytes,
    Buffer.alloc((ALIGNMENT_BYTES - (bytes.length % ALIGNMENT_BYTES)) % ALIGNMENT_BYTES),
  ]);
