import type { Readable, Writable } from 'node:stream';

/** The fields of a protocol message that are used here. */
interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

interface ConsoleEvents {
  'Log.entryAdded': { entry: { level: string; text: string; url?: string } };
  'Runtime.consoleAPICalled': { type: string; args: { value?: unknown; description?: string }[] };
  'Runtime.exceptionThrown': { exceptionDetails: { text: string; exception?: { description?: string } } };
}

/** The DevTools protocol over the pipe of `--remote-debugging-pipe`. */
export class Devtools {
  /** Everything that a page has logged as an error, in order. */
  readonly errors: string[] = [];
  readonly #to: Writable;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #ids = 0;
  #session: string | undefined;
  #rest = '';

  constructor(to: Writable, from: Readable) {
    this.#to = to;
    // When the browser exits, it closes its end of the pipe.
    to.on('error', () => {});
    from.setEncoding('utf8').on('data', (text: string) => this.#take(text));
  }

  /** Opens a page, and listens to its console from the start. */
  async open(url: string): Promise<void> {
    const target = await this.#call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = (await this.#call('Target.attachToTarget', {
      ...(target as { targetId: string }),
      flatten: true,
    })) as { sessionId: string };
    this.#session = sessionId;
    for (const domain of ['Log', 'Runtime']) await this.#call(`${domain}.enable`, {}, sessionId);
    await this.#call('Page.navigate', { url }, sessionId);
  }

  /** Runs a protocol command on the open page. */
  command(method: string, params: object = {}): Promise<unknown> {
    return this.#call(method, params, this.#session);
  }

  #call(method: string, params: object, sessionId?: string): Promise<unknown> {
    const id = ++this.#ids;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    this.#to.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return waiting.promise;
  }

  #take(text: string): void {
    const messages = (this.#rest + text).split('\0');
    this.#rest = messages.pop() ?? '';
    for (const message of messages) this.#hear(JSON.parse(message) as Message);
  }

  #hear(message: Message): void {
    const { id, result, error } = message;
    if (id !== undefined) {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) waiting?.reject(new Error(error.message));
      else waiting?.resolve(result);
    }
    const red = errorOf(message);
    if (red !== undefined) this.errors.push(red);
  }
}

function errorOf({ method, params }: Message): string | undefined {
  switch (method) {
    case 'Log.entryAdded': {
      const { entry } = params as ConsoleEvents[typeof method];
      return entry.level === 'error' ? `${entry.text} ${entry.url ?? ''}` : undefined;
    }
    case 'Runtime.consoleAPICalled': {
      const { type, args } = params as ConsoleEvents[typeof method];
      return type === 'error' || type === 'assert'
        ? args.map(({ value, description }) => description ?? String(value)).join(' ')
        : undefined;
    }
    case 'Runtime.exceptionThrown': {
      const { exceptionDetails } = params as ConsoleEvents[typeof method];
      return exceptionDetails.exception?.description ?? exceptionDetails.text;
    }
    default:
      return undefined;
  }
}
