import { connect, type Socket } from 'node:net';

/** How a TCP connection ended, and the bytes that came before. */
export interface RawResponse {
  readonly head: string;
  /** What followed the head, still in chunked coding. */
  readonly coded: Buffer;
  /** `fin`, or an error code such as `ECONNRESET`. */
  readonly ended: string;
}

/** Makes one streaming chat completion over a bare socket, and reads until the connection ends. */
export async function rawChat(
  port: number,
  content: string,
  socket = connect(port, '127.0.0.1'),
): Promise<RawResponse> {
  const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content }] });
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: provider\r\nconnection: close\r\n`;
  socket.write(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  return readAll(socket);
}

export function readAll(socket: Socket): Promise<RawResponse> {
  const pieces: Buffer[] = [];
  let ended = 'fin';
  return new Promise((resolve) => {
    socket.on('data', (piece: Buffer) => pieces.push(piece));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      ended = error.code ?? error.message;
    });
    socket.on('close', () => {
      const all = Buffer.concat(pieces);
      const end = all.indexOf('\r\n\r\n');
      resolve({ head: all.subarray(0, end).toString(), coded: all.subarray(end + 4), ended });
    });
  });
}

export interface Decoded {
  readonly body: Buffer;
  /** The number of chunks, which is the number of writes. */
  readonly chunks: number;
  /** Where the bytes ended. */
  readonly stopped: 'in_chunk' | 'between' | 'terminated';
}

/** Removes the chunked coding. */
export function decodeChunked(coded: Buffer): Decoded {
  const pieces: Buffer[] = [];
  let rest = coded;
  const stop = (stopped: Decoded['stopped']) => ({
    body: Buffer.concat(pieces),
    chunks: pieces.length,
    stopped,
  });
  while (rest.length > 0) {
    const line = rest.indexOf('\r\n');
    const size = Number.parseInt(rest.subarray(0, line).toString(), 16);
    if (size === 0) return stop('terminated');
    const piece = rest.subarray(line + 2, line + 2 + size);
    pieces.push(piece);
    if (piece.length < size) return stop('in_chunk');
    rest = rest.subarray(line + 2 + size + 2);
  }
  return stop('between');
}
