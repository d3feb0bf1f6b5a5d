import tls from 'node:tls';
import type { Certificate } from '../provider/certificate.ts';
import { type Listening, listen } from './servers.ts';

const FRAME = {
  data: 0,
  headers: 1,
  rst_stream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  window_update: 8,
} as const;
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;
const STATUS_200 = Buffer.from([0x88]);
const FRAME_HEADER_BYTES = 9;
const CLIENT_PREFACE_BYTES = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'.length;

/**
 * The server's side of one HTTP/2 connection, frame by frame, because node:http2 doesn't let a server misbehave enough.
 */
export class FrameConnection {
  readonly socket: tls.TLSSocket;
  #received: Buffer = Buffer.alloc(0);
  #preface = CLIENT_PREFACE_BYTES;

  constructor(socket: tls.TLSSocket, onRequest: (stream: number, connection: FrameConnection) => void) {
    this.socket = socket;
    socket.on('error', () => {});
    this.#send(FRAME.settings, 0, 0);
    socket.on('data', (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      for (const { type, flags, stream, payload } of this.#frames()) {
        if (type === FRAME.settings && !(flags & ACK)) this.#send(FRAME.settings, ACK, 0);
        if (type === FRAME.ping && !(flags & ACK)) this.#send(FRAME.ping, ACK, 0, payload);
        if (type === FRAME.headers) onRequest(stream, this);
      }
    });
  }

  /** Status 200 and nothing else. */
  respond(stream: number): void {
    this.#send(FRAME.headers, END_HEADERS, stream, STATUS_200);
  }

  data(stream: number, text: string, { end = false } = {}): void {
    this.#send(FRAME.data, end ? END_STREAM : 0, stream, Buffer.from(text));
  }

  /** Announces a DATA frame of `announced` bytes, but sends only `text` of it. */
  partOfData(stream: number, text: string, announced: number): void {
    this.socket.write(frameHeader(FRAME.data, 0, stream, announced));
    this.socket.write(text);
  }

  reset(stream: number, code: number): void {
    this.#send(FRAME.rst_stream, 0, stream, uint32(code));
  }

  goaway(last_stream: number, code: number): void {
    this.#send(FRAME.goaway, 0, 0, Buffer.concat([uint32(last_stream), uint32(code)]));
  }

  #send(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): void {
    this.socket.write(Buffer.concat([frameHeader(type, flags, stream, payload.length), payload]));
  }

  *#frames() {
    const preface = Math.min(this.#preface, this.#received.length);
    this.#preface -= preface;
    this.#received = this.#received.subarray(preface);
    while (this.#received.length >= FRAME_HEADER_BYTES) {
      const end = FRAME_HEADER_BYTES + this.#received.readUIntBE(0, 3);
      if (this.#received.length < end) return;
      const [type, flags] = [this.#received.readUInt8(3), this.#received.readUInt8(4)];
      const stream = this.#received.readUInt32BE(5);
      const payload = this.#received.subarray(FRAME_HEADER_BYTES, end);
      this.#received = this.#received.subarray(end);
      yield { type, flags, stream, payload };
    }
  }
}

export interface FrameServer extends Listening {
  readonly connections: readonly FrameConnection[];
}

/** An HTTP/2 server that leaves all responses to `onRequest`. */
export async function frameServer(
  certificate: Certificate,
  onRequest: (stream: number, connection: FrameConnection) => void,
): Promise<FrameServer> {
  const connections: FrameConnection[] = [];
  const server = tls.createServer({ ...certificate, ALPNProtocols: ['h2'] }, (socket) => {
    connections.push(new FrameConnection(socket, onRequest));
  });
  return { ...(await listen(server, 'https')), connections };
}

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

function frameHeader(type: number, flags: number, stream: number, length: number): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUIntBE(length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return header;
}
