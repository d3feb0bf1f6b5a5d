import { EventSourceParserStream } from 'eventsource-parser/stream';
import { completeConfiguration } from '../config/load.ts';
import { createLogger } from '../lib/log.ts';
import { openReplica, type Replica } from '../server/replica.ts';
import { ANSWER } from './answer.ts';
import { isTold, narrated } from './narration.ts';
import { startScriptedProvider } from './scripted-provider.ts';
import type { Terminal } from './terminal.ts';

/** How long the provider may stay silent. The default of 90 s would make for a dull demo. */
const IDLE_MS = 1200;
/** Longer than the demo takes. */
const ANSWER_MAX_MS = 60_000;
/** One fault for each attempt except the last. */
const FAULTS = 'cut=reset@120, stall=30s@150, error=overloaded@100';

/**
 * Delivers an answer that is cut three times, using a scripted provider, and shows it as it arrives. Resolves with
 * whether the whole answer arrived.
 */
export async function playDemo(terminal: Terminal): Promise<boolean> {
  const provider = await startScriptedProvider(ANSWER);
  try {
    const replica = await startReplica(provider.url, terminal);
    try {
      const { api } = await replica.listen();
      terminal.line(`provider   ${provider.url}, and nothing else is asked`, 'dim');
      terminal.line(`holdfast   ${api}/v1, clocks.idle_ms: ${IDLE_MS}, faults.allow_header: true`, 'dim');
      terminal.line(`request    Holdfast-Fault: ${FAULTS}`, 'dim');
      terminal.heading('What is a holdfast?');
      const isWhole = (await ask(api, (text) => terminal.text(text))) === ANSWER;
      if (isWhole) terminal.line('✔ byte for byte what the provider says uncut', 'green');
      else terminal.line('✖ the answer differs from that of the provider', 'red');
      return isWhole;
    } finally {
      await replica.stop();
    }
  } finally {
    provider.close();
  }
}

function startReplica(base_url: string, terminal: Terminal): Promise<Replica> {
  const configuration = completeConfiguration({
    listen: { port: 0, admin_port: 0 },
    upstreams: { provider: { base_url, dialect: 'vllm', clocks: { idle_ms: IDLE_MS } } },
    checkpoint: { store: 'memory' },
    faults: { allow_header: true },
  });
  const log = createLogger('info', {
    write(line) {
      const told = JSON.parse(line) as object;
      if (isTold(told)) for (const remark of narrated(told)) terminal.aside(remark);
    },
  });
  return openReplica({ configuration, load: () => ({ configuration, warnings: [] }), log });
}

/** Resolves with the text of the answer. */
async function ask(api: string, onText: (text: string) => void): Promise<string> {
  const response = await fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer demo', 'content-type': 'application/json', 'holdfast-fault': FAULTS },
    body: JSON.stringify({
      model: 'demo',
      stream: true,
      messages: [{ role: 'user', content: 'What is a holdfast?' }],
    }),
    signal: AbortSignal.timeout(ANSWER_MAX_MS),
  });
  const { body } = response;
  if (!response.ok || !body) throw new Error(`the answer was ${response.status}: ${await response.text()}`);
  let answer = '';
  for await (const { data } of body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())) {
    const content = data === '[DONE]' ? undefined : textIn(data);
    if (!content) continue;
    answer += content;
    onText(content);
  }
  return answer;
}

function textIn(data: string): string | undefined {
  const { choices } = JSON.parse(data) as {
    readonly choices: readonly { readonly delta: { readonly content?: string } }[];
  };
  return choices[0]?.delta.content;
}
