import { chunkEvent } from '../../http-peer.ts';
import type { Payload } from '../../simulation/responses-told.ts';
import { blockStop, end, input, start, stop, textBlock, toolStart } from './messages-raw.ts';
import type { RawAnswer } from './raw-relay.ts';
import { begin, completed, itemsOf, message } from './responses-items.ts';

/** The text before the call. */
export const SAID_TEXT = 'I will write it.';
const PIECE = 'x'.repeat(100);
const SAID = message('msg_1', 0, [SAID_TEXT]);
const CALL = { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'write' };

/** Events of a response as sent, numbered from `first`. */
export const framed = (events: readonly Payload[], first = 0): string[] =>
  events.map((event, place) => {
    const data = JSON.stringify({ ...event, sequence_number: first + place });
    return `event: ${event.type}\ndata: ${data}\n\n`;
  });

/** Answers that end with one call. Its arguments arrive in `pieces` pieces, each after a pause of `piece_ms`. */
export class SlowCall {
  readonly arguments: string;
  readonly #fragments: readonly (string | number)[];

  constructor(pieces: number, piece_ms: number) {
    this.arguments = JSON.stringify({ text: PIECE.repeat(pieces) });
    const slow = Array.from({ length: pieces }, () => [piece_ms, PIECE]).flat();
    this.#fragments = ['{"text":"', ...slow, '"}'];
  }

  get chat(): RawAnswer {
    const name = { id: 'call_1', type: 'function', function: { name: 'write', arguments: '' } };
    return [
      chunkEvent({ role: 'assistant', content: '' }),
      chunkEvent({ content: SAID_TEXT }),
      chunkEvent({ tool_calls: [{ index: 0, ...name }] }),
      ...this.slowly((piece) => chunkEvent({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
      chunkEvent({}, 'tool_calls'),
      'data: [DONE]\n\n',
    ];
  }

  get messages(): RawAnswer {
    return [
      start(),
      ...textBlock(0, SAID_TEXT),
      toolStart(1, 'toolu_1'),
      ...this.slowly((piece) => input(1, piece)),
      blockStop(1),
      end('tool_use'),
      stop,
    ];
  }

  get responses(): RawAnswer {
    let sent = 0;
    const frame = (event: Payload): string => framed([event], sent++).join('');
    const place = { item_id: 'fc_1', output_index: 1 };
    const item = { ...CALL, arguments: '', status: 'in_progress' };
    const begun = [...begin(1), ...SAID, { type: 'response.output_item.added', output_index: 1, item }];
    return [
      ...begun.map(frame),
      ...this.slowly((delta) => frame({ type: 'response.function_call_arguments.delta', ...place, delta })),
      ...[...this.#called, this.responsesEnd].map(frame),
    ];
  }

  /** The last event of a response, without its number. */
  get responsesEnd(): Payload {
    return completed(1, itemsOf([...SAID, ...this.#called]));
  }

  /** What the provider sends for the arguments, with the pauses in between. */
  slowly(frameOf: (piece: string) => string): (string | number)[] {
    return this.#fragments.map((piece) => (typeof piece === 'number' ? piece : frameOf(piece)));
  }

  get #called(): readonly Payload[] {
    const place = { item_id: 'fc_1', output_index: 1 };
    const item = { ...CALL, arguments: this.arguments, status: 'completed' };
    return [
      { type: 'response.function_call_arguments.done', ...place, arguments: this.arguments },
      { type: 'response.output_item.done', output_index: 1, item },
    ];
  }
}
