import { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { type StreamedAnswer, streamedAnswer } from './answer.ts';
import { type Cut, type CutManner, Cutter, type PassedRequest } from './cutter.ts';
import { LlamaServer } from './llama-server.ts';
import { WIRES, type WireName } from './wires.ts';

/** Model names for clients. They all lead to the same server, presented in different ways. */
export const MODELS = {
  /** A server that keeps its answers. */
  resume: 'keeps-answers',
  /**
   * A server from before llama.cpp kept answers: Holdfast has to request the rest with the answer so far as a prefix.
   */
  prefill: 'keeps-nothing',
  /** The configuration doesn't say that this is a llama.cpp server. */
  unknown: 'not-known',
} as const;

export type ModelName = keyof typeof MODELS;

/** A question, and the server to ask. */
export interface Question {
  readonly model: ModelName;
  readonly wire: WireName;
  /** The text for the model to recite. */
  readonly text: string;
  readonly tools?: readonly object[];
}

/** An answer, and how it was obtained. */
export interface Recovery {
  readonly answer: StreamedAnswer;
  /** The requests for the answer and for its rest, in order. */
  readonly requests: readonly PassedRequest[];
}

/** Holdfast in front of `llama-server`, with a cutter in between for each model name. */
export class LlamaDeployment {
  readonly #holdfast: HoldfastProcess;
  readonly #server: LlamaServer;
  readonly #cutters: Readonly<Record<ModelName, Cutter>>;
  readonly #uncut = new Map<string, Promise<Recovery>>();

  private constructor(
    holdfast: HoldfastProcess,
    server: LlamaServer,
    cutters: Readonly<Record<ModelName, Cutter>>,
  ) {
    this.#holdfast = holdfast;
    this.#server = server;
    this.#cutters = cutters;
  }

  static async start(binary: string): Promise<LlamaDeployment> {
    const server = await LlamaServer.start(binary);
    const [resume, prefill, unknown] = await Promise.all([
      Cutter.start(server.port, true),
      Cutter.start(server.port, false),
      Cutter.start(server.port, false),
    ]);
    const holdfast = await HoldfastProcess.start({
      upstreams: {
        resume: { base_url: resume.url, dialect: 'llamacpp' },
        prefill: { base_url: prefill.url, dialect: 'llamacpp' },
        unknown: { base_url: unknown.url },
      },
      routes: Object.entries(MODELS).map(([upstream, model]) => ({ model, targets: [{ upstream }] })),
      recovery: { backoff_ms: 1, backoff_max_ms: 10 },
      checkpoint: { store: 'memory' },
    });
    return new LlamaDeployment(holdfast, server, { resume, prefill, unknown });
  }

  /** Asks through Holdfast and cuts the responses. Rejects if a cut was not reached. */
  async ask(question: Question, cuts: readonly Cut[], manner: CutManner = 'close'): Promise<Recovery> {
    const { model, wire, text, tools } = question;
    const cutter = this.#cutters[model];
    cutter.cutNext(cuts, manner);
    const body = { model: MODELS[model], ...WIRES[wire].question(text), ...(tools && { tools }) };
    const answer = await streamedAnswer(this.#holdfast.url, WIRES[wire].path, body);
    if (cutter.missed > 0) throw new Error(`${cutter.missed} of ${cuts.length} cuts were never reached`);
    return { answer, requests: [...cutter.requests] };
  }

  /** The same answer without cuts, requested once per question. */
  async uncut(question: Question): Promise<StreamedAnswer> {
    const key = JSON.stringify(question);
    const asked = this.#uncut.get(key) ?? this.ask(question, []);
    this.#uncut.set(key, asked);
    return (await asked).answer;
  }

  /** Rejects if Holdfast logged complaints. */
  async close(): Promise<void> {
    try {
      await this.#holdfast.close();
    } finally {
      await Promise.all(Object.values(this.#cutters).map((cutter) => cutter.close()));
      await this.#server.close();
    }
  }
}
