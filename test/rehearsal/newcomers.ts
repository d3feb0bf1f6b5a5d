import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { type Deployment, modelOf } from '../e2e/deployment.ts';
import { post } from '../e2e/raw-client.ts';
import { textOf } from '../e2e/situations.ts';
import { sendRequest } from '../e2e/stream-client.ts';
import { answerOf, faultOf, readWhat, requestOf } from './questions.ts';

const EVENTS = 8;
const EVENT_MS = 20;

/** A request that got no complete answer; times are those of `performance.now()`. */
export interface Refusal {
  readonly fault: string;
  readonly asked_ms: number;
  readonly ended_ms: number;
}

/** A steady flow of short requests that never retry. Not one of them may fail, not even for a moment. */
export class Newcomers {
  /** The number of requests so far. */
  count = 0;
  readonly refusals: Refusal[] = [];
  readonly #deployment: Deployment;
  readonly #url: string;
  readonly #asked: Promise<void>[] = [];
  readonly #flow: Promise<void>;
  #isOver = false;

  constructor(deployment: Deployment, url: string, interval_ms: number) {
    this.#deployment = deployment;
    this.#url = url;
    this.#flow = this.#come(interval_ms);
  }

  /** Stops the flow. Resolves once all requests have been answered. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#flow;
    await Promise.all(this.#asked);
  }

  async #come(interval_ms: number): Promise<void> {
    const ways = [this.#stream, this.#document, this.#list, this.#streamOnItsOwnConnection];
    for (; !this.#isOver; this.count++) {
      const way = ways[this.count % ways.length]?.bind(this);
      const name = `newcomer ${this.count}`;
      const asked_ms = performance.now();
      const asked = way?.(name, this.count).catch((error: unknown) => describe(error));
      this.#asked.push(
        Promise.resolve(asked).then((fault) => {
          if (fault === undefined) return;
          const told = `${name} (${way?.name.replace('bound #', '')}): ${fault}`;
          this.refusals.push({ fault: told, asked_ms, ended_ms: performance.now() });
        }),
      );
      await pause(interval_ms);
    }
  }

  /** Uses a connection that is kept for later requests. */
  async #stream(question: string, serial: number): Promise<string | undefined> {
    const plan = this.#plan(question, serial);
    const response = await post(this.#url, requestOf(question));
    const body = await response.text();
    return response.ok ? faultOf(readWhat(body), plan) : `${response.status} ${body}`;
  }

  async #streamOnItsOwnConnection(question: string, serial: number): Promise<string | undefined> {
    const plan = this.#plan(question, serial);
    const [response] = (await once(sendRequest(this.#url, requestOf(question)), 'response')) as [
      IncomingMessage,
    ];
    const body = await text(response);
    return response.statusCode === 200 ? faultOf(readWhat(body), plan) : `${response.statusCode} ${body}`;
  }

  async #document(question: string, serial: number): Promise<string | undefined> {
    const plan = this.#plan(question, 2 * serial);
    const messages = [{ role: 'user', content: question }];
    const response = await post(this.#url, { model: modelOf('vllm'), messages });
    const body = await response.text();
    if (!response.ok) return `${response.status} ${body}`;
    const said = JSON.parse(body).choices[0].message.content;
    return said === textOf(plan) ? undefined : `text of ${said.length} characters`;
  }

  /** A request that Holdfast passes through. */
  async #list(): Promise<string | undefined> {
    const response = await fetch(`${this.#url}/models`);
    const body = await response.text();
    return response.ok ? undefined : `${response.status} ${body}`;
  }

  #plan(question: string, serial: number) {
    const plan = answerOf(serial, EVENTS * EVENT_MS, EVENT_MS);
    this.#deployment.plan(question, plan);
    return plan;
  }
}

/** Includes the causes of the error. */
export const describe = (error: unknown): string =>
  error instanceof Error && error.cause ? `${error.message}: ${describe(error.cause)}` : String(error);
