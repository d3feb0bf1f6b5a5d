import {
  brotliDecompressSync,
  gunzipSync,
  inflateSync,
  type ZlibOptions,
  zstdDecompressSync,
} from 'node:zlib';
import { CredentialMask } from './credential-mask.ts';
import { ERROR_BODY_BYTES } from './refusal.ts';
import {
  bodyOf,
  type ResponseBody,
  type Transport,
  TransportFailure,
  type TransportRequest,
  type TransportResponse,
} from './transport.ts';

type Decompress = (bytes: Buffer, options: Pick<ZlibOptions, 'maxOutputLength'>) => Buffer;

const DECOMPRESS: Readonly<Record<string, Decompress>> = {
  gzip: gunzipSync,
  'x-gzip': gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};

/** Masks credentials that an upstream repeats in its errors. Other responses pass unchanged. */
export class MaskingTransport implements Transport {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async open(request: TransportRequest): Promise<TransportResponse> {
    const response = await this.#transport.open(request);
    if (response.status < 400) return response;
    const mask = new CredentialMask(request.headers);
    const shown = { ...response, headers: mask.headers(response.headers) };
    const decompress = DECOMPRESS[String(response.headers['content-encoding'] ?? '').toLowerCase()];
    return decompress ? opened(shown, decompress, mask) : { ...shown, body: maskedBody(response.body, mask) };
  }

  /** The connections belong to the wrapped transport. */
  async close(): Promise<void> {}
}

const maskedBody = (body: ResponseBody, mask: CredentialMask): ResponseBody => ({
  async consume(take) {
    const stream = mask.stream();
    await body.consume((piece) => {
      const ready = stream.push(piece);
      return ready.length > 0 ? take(ready) : undefined;
    });
    const rest = stream.end();
    if (rest.length > 0) await take(rest);
  },
});

/**
 * Decompresses the response if there is something to mask; otherwise it stays unchanged. Rejects with a {@link
 * TransportFailure}.
 */
async function opened(
  response: TransportResponse,
  decompress: Decompress,
  mask: CredentialMask,
): Promise<TransportResponse> {
  const compressed = await wholeOf(response.body);
  const plain = decompressed(compressed, decompress);
  if (!plain || !mask.bytes(plain)) return { ...response, body: bodyOf(compressed) };
  const { 'content-encoding': _, ...headers } = response.headers;
  return {
    ...response,
    headers: { ...headers, 'content-length': String(plain.length) },
    body: bodyOf(plain),
  };
}

async function wholeOf(body: ResponseBody): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  await body.consume((piece) => {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > ERROR_BODY_BYTES) throw new TransportFailure('ERROR_BODY_TOO_LARGE');
    return undefined;
  });
  return Buffer.concat(pieces);
}

/** `undefined` if it can't be decompressed, or is larger than the limit for errors. */
function decompressed(bytes: Buffer, decompress: Decompress): Buffer | undefined {
  try {
    return decompress(bytes, { maxOutputLength: ERROR_BODY_BYTES });
  } catch {
    return undefined;
  }
}
