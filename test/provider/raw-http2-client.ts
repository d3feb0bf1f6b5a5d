import type { Socket } from 'node:net';

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const FRAMES = ['DATA', 'HEADERS', 'PRIORITY', 'RST_STREAM', 'SETTINGS', 'PUSH_PROMISE', 'PING', 'GOAWAY'];
const TYPE = { DATA: 0, HEADERS: 1, SETTINGS: 4 };
const END_STREAM = 0x1;
const END_HEADERS = 0x4;

export interface RawHttp2Response {
  readonly body: Buffer;
  /**
   * In order, with error codes: `HEADERS`, `DATA` once per consecutive series, `END_STREAM`, `RST_STREAM 2`, `GOAWAY
   * 0`.
   */
  readonly frames: readonly string[];
  /** `fin`, an error code such as `ECONNRESET`, or `open` if the connection outlasted the stream. */
  readonly ended: string;
}

/** Makes one streaming chat completion as the only stream of a connection, without a library that would tidy up. */
export function rawHttp2Chat(socket: Socket): Promise<RawHttp2Response> {
  const request = JSON.stringify({
    model: 'm',
    stream: true,
    messages: [{ role: 'user', content: 'hello' }],
  });
  socket.write(PREFACE);
  socket.write(frame(TYPE.SETTINGS, 0, 0, Buffer.alloc(0)));
  socket.write(frame(TYPE.HEADERS, END_HEADERS, 1, headers()));
  socket.write(frame(TYPE.DATA, END_STREAM, 1, Buffer.from(request)));
  return readFrames(socket);
}

function readFrames(socket: Socket): Promise<RawHttp2Response> {
  const body: Buffer[] = [];
  const frames: string[] = [];
  let unread = Buffer.alloc(0);
  let ended = 'fin';
  return new Promise((resolve) => {
    socket.on('data', (piece: Buffer) => {
      unread = Buffer.concat([unread, piece]);
      while (unread.length >= 9 && unread.length >= 9 + unread.readUIntBE(0, 3)) {
        const size = 9 + unread.readUIntBE(0, 3);
        note(unread.subarray(0, size), body, frames);
        unread = unread.subarray(size);
      }
      if (!frames.some((name) => /END_STREAM|RST_STREAM/.test(name))) return;
      if (frames.some((name) => name.startsWith('GOAWAY'))) return;
      // Nothing announces that the connection will end: call it open if it outlasts the stream by this much.
      setTimeout(() => {
        if (!socket.readableEnded) ended = 'open';
        socket.destroy();
      }, 50);
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      ended = error.code ?? error.message;
    });
    socket.on('close', () => resolve({ body: Buffer.concat(body), frames, ended }));
  });
}

function note(whole: Buffer, body: Buffer[], frames: string[]): void {
  const type = FRAMES[whole.readUInt8(3)];
  const payload = whole.subarray(9);
  if (type === 'DATA' && payload.length > 0) {
    body.push(payload);
    if (frames.at(-1) !== 'DATA') frames.push('DATA');
  }
  if (type === 'HEADERS') frames.push('HEADERS');
  if (type === 'RST_STREAM') frames.push(`RST_STREAM ${payload.readUInt32BE(0)}`);
  // The payload starts with the last stream that the server accepted; ours is number 1.
  if (type === 'GOAWAY') frames.push(`GOAWAY ${payload.readUInt32BE(4)} after ${payload.readUInt32BE(0)}`);
  if ((type === 'DATA' || type === 'HEADERS') && whole.readUInt8(4) & END_STREAM) frames.push('END_STREAM');
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** HPACK: `:method POST` and `:scheme http` from the static table, `:path` and `:authority` as literals. */
function headers(): Buffer {
  const literal = (name: number, value: string) => Buffer.from([name, value.length, ...Buffer.from(value)]);
  return Buffer.concat([
    Buffer.from([0x83, 0x86]),
    literal(0x04, '/v1/chat/completions'),
    literal(0x01, 'provider'),
  ]);
}
