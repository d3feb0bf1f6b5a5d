import type { Case, Wire } from '../cases.ts';
import type { End, Shown } from '../judge.ts';
import { askChat } from './chat.ts';
import { askMessages } from './messages.ts';
import { askResponses } from './responses.ts';
import { Screen } from './screen.ts';
import { watchedFetch } from './watched-fetch.ts';

export interface Gateway {
  /** Its origin and path, without `/v1`. */
  readonly root: string;
  readonly api_key: string;
  readonly models: Readonly<Record<Wire, string>>;
  readonly headers: Readonly<Record<Wire, Readonly<Record<string, string>>>>;
}

export interface Clocks {
  /** An application gives up after so long without anything new to show. */
  readonly hang_ms: number;
  /** For the cases about silence: how long clients and load balancers wait for a byte. */
  readonly idle_ms: number;
}

/** What each wire's client needs to ask. */
export interface Question {
  readonly gateway: Gateway;
  readonly prompt: string;
  readonly stream: boolean;
  readonly has_tools: boolean;
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
  readonly screen: Screen;
}

export interface Seen {
  readonly shown: Shown;
  readonly end: End;
  /** Of the error, for people. */
  readonly message?: string;
}

const ASK = { chat: askChat, messages: askMessages, responses: askResponses };

/** Asks as an application does, with the SDK of the wire and without its retries. `showed` reports what is new. */
export async function ask(
  asked: Case,
  prompt: string,
  gateway: Gateway,
  { hang_ms, idle_ms }: Clocks,
  showed: () => void = () => {},
): Promise<Seen> {
  const over = new AbortController();
  const watchesSilence = asked.trouble.startsWith('silence');
  let ranOut: 'hang' | 'idle' | undefined;
  const clock = (kind: 'hang' | 'idle', limit_ms: number) =>
    setTimeout(() => {
      ranOut = kind;
      over.abort();
    }, limit_ms);
  const hang = clock('hang', hang_ms);
  const idle = watchesSilence ? clock('idle', idle_ms) : undefined;
  const screen = new Screen(() => {
    hang.refresh();
    showed();
  });
  const end = (kind: End): Seen => ({ shown: screen.shown, end: kind });
  try {
    await ASK[asked.wire]({
      gateway,
      prompt,
      stream: asked.manner === 'streaming',
      has_tools: asked.state !== 'text',
      fetch: watchedFetch(() => idle?.refresh()),
      signal: over.signal,
      screen,
    });
    if (ranOut) return end({ kind: ranOut });
    if (screen.failed) return end({ kind: 'error', name: 'failed' });
    return end({ kind: 'completed', finish: screen.finish });
  } catch (error) {
    if (ranOut) return end({ kind: ranOut });
    const { name, message } = error as Error;
    const { status } = error as { readonly status?: unknown };
    const known = typeof status === 'number' ? status : undefined;
    return { ...end({ kind: 'error', name, status: known }), message };
  } finally {
    clearTimeout(hang);
    clearTimeout(idle);
  }
}
