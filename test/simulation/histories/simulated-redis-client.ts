import { EventEmitter } from 'node:events';
import type { RedisClient } from '../../../src/checkpoint/redis/client.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { SimulatedRedis } from './simulated-redis.ts';

/** A command that was not answered for so long has failed. */
export const COMMAND_MS = 1000;
const SILENCES = 2;
const RECONNECT_MIN_MS = 50;
const RECONNECT_MAX_MS = 1000;
const LATENCY_MS = 1;

interface Pending {
  readonly reject: (error: Error) => void;
  readonly cancelTimer: () => void;
}

/** What goes one way at the same time. */
interface Packet {
  readonly at_ms: number;
  readonly contents: (() => void)[];
  isOnItsWay: boolean;
}

const NO_PACKET: Packet = { at_ms: 0, contents: [], isOnItsWay: false };

/**
 * The connection of one replica to Redis, with what ioredis makes of it: commands are answered in order, fail when that
 * takes too long although they may be carried out later, and are not queued while there is no connection.
 */
export class SimulatedRedisClient extends EventEmitter {
  status: 'wait' | 'ready' | 'reconnecting' | 'end' = 'wait';
  readonly #process: SimulatedProcess;
  readonly #time: VirtualTime;
  readonly #redis: SimulatedRedis;
  readonly #pending = new Set<Pending>();
  /** Distinguishes the connection from those before it. */
  #connection = 0;
  /** The server that it is to, by how often that was started. */
  #start = 0;
  #attempts = 0;
  /** When the last answer was read, or the first question after all were answered was asked. */
  #heard_ms = 0;
  #latency_ms = LATENCY_MS;
  #packets: Record<'arrives' | 'answers', Packet> = { arrives: NO_PACKET, answers: NO_PACKET };
  /** What is on its way to a server that cannot be reached now, which the network keeps, and delivers at last. */
  #held: (() => void)[] = [];
  #isCut: boolean = false;
  #losesReplies: boolean = false;

  constructor(process: SimulatedProcess, time: VirtualTime, redis: SimulatedRedis) {
    super();
    this.#process = process;
    this.#time = time;
    this.#redis = redis;
    for (const [name, command] of Object.entries(redis.commands)) {
      const run = command as (...args: unknown[]) => unknown;
      Object.assign(this, { [name]: (...args: unknown[]) => this.#ask(() => run(...args)) });
    }
  }

  asRedisClient(): RedisClient {
    return this as unknown as RedisClient;
  }

  async info(): Promise<string> {
    return 'redis_version:7.2.0\r\n';
  }

  async connect(): Promise<void> {
    this.#connect();
  }

  disconnect(): void {
    this.status = 'end';
    this.#failAll('Connection is closed.');
  }

  /** Nothing passes any more, in neither direction, until {@link heal}: packets are kept by the network. */
  cut(): void {
    this.#isCut = true;
  }

  heal(): void {
    this.#isCut = false;
    const held = this.#held;
    this.#held = [];
    for (const deliver of held) deliver();
  }

  /** How long everything takes from now on, each way. */
  slow(latency_ms = LATENCY_MS): void {
    this.#latency_ms = latency_ms;
  }

  /** What is asked from now on is carried out, and the answer lost with the connection. */
  loseReplies(): void {
    this.#losesReplies = true;
  }

  /** The server has gone: connections break. */
  reset(): void {
    this.#process.receive(() => this.#drop());
  }

  #connect(): void {
    if (this.status === 'end' || this.#process.isDead) return;
    if (this.#isCut || this.#redis.isDown) {
      this.#reconnect();
      return;
    }
    this.status = 'ready';
    this.#attempts = 0;
    this.#connection++;
    this.#start = this.#redis.start;
    this.emit('ready');
  }

  #reconnect(): void {
    this.status = 'reconnecting';
    const wait_ms = Math.min(RECONNECT_MIN_MS * 2 ** this.#attempts++, RECONNECT_MAX_MS);
    this.#process.after(wait_ms, () => this.#connect());
  }

  #drop(): void {
    if (this.status !== 'ready') return;
    this.#connection++;
    this.#failAll('Connection is closed.');
    this.emit('close');
    this.#reconnect();
  }

  #failAll(reason: string): void {
    const pending = [...this.#pending];
    this.#pending.clear();
    for (const { reject, cancelTimer } of pending) {
      cancelTimer();
      reject(new Error(reason));
    }
  }

  #ask(run: () => unknown): Promise<unknown> {
    if (this.status !== 'ready')
      return Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const connection = this.#connection;
    if (this.#pending.size === 0) this.#heard_ms = this.#process.now();
    const cancelTimer = this.#process.after(COMMAND_MS, () => {
      this.#pending.delete(pending);
      reject(new Error('Command timed out'));
      if (this.#process.now() - this.#heard_ms >= SILENCES * COMMAND_MS && connection === this.#connection)
        this.#drop();
    });
    const pending: Pending = { reject, cancelTimer };
    this.#pending.add(pending);
    const answer = (settle: () => void) => {
      this.#process.receive(() => {
        if (connection !== this.#connection) return;
        this.#heard_ms = this.#process.now();
        if (!this.#pending.delete(pending)) return;
        cancelTimer();
        settle();
      });
    };
    const start = this.#start;
    this.#travel('arrives', () => {
      // What was sent to a server that is gone does not come to the next one.
      if (this.#redis.isDown || this.#redis.start !== start) return;
      const isLost = this.#losesReplies;
      let settle: () => void;
      try {
        const result = run();
        settle = () => resolve(result);
      } catch (error) {
        settle = () => reject(error as Error);
      }
      if (isLost) {
        this.#losesReplies = false;
        this.reset();
      } else this.#travel('answers', () => answer(settle));
    });
    return promise;
  }

  /** In order, each way; what is sent while nothing else happens comes together. */
  #travel(way: 'arrives' | 'answers', then: () => void): void {
    const now_ms = this.#time.now();
    const last = this.#packets[way];
    const at_ms = Math.max(now_ms + this.#latency_ms, last.at_ms);
    if (last.isOnItsWay && at_ms === last.at_ms) {
      last.contents.push(then);
      return;
    }
    const packet = { at_ms, contents: [then], isOnItsWay: true };
    this.#packets[way] = packet;
    const deliver = () => {
      for (const content of packet.contents) content();
    };
    this.#time.after(at_ms - now_ms, () => {
      packet.isOnItsWay = false;
      if (this.#isCut) this.#held.push(deliver);
      else deliver();
    });
  }
}
