import { EventEmitter } from 'node:events';
import type { RedisClient } from '../../../src/checkpoint/redis/client.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { SimulatedRedis } from './simulated-redis.ts';

/** A command without a reply for this long has failed. */
export const COMMAND_MS = 1000;
const SILENCES = 2;
const RECONNECT_MIN_MS = 50;
const RECONNECT_MAX_MS = 1000;
const LATENCY_MS = 1;

interface Pending {
  readonly reject: (error: Error) => void;
  readonly cancelTimer: () => void;
}

/** Data that travel together in one direction. */
interface Packet {
  readonly at_ms: number;
  readonly contents: (() => void)[];
  isOnItsWay: boolean;
}

const NO_PACKET: Packet = { at_ms: 0, contents: [], isOnItsWay: false };

/**
 * One replica's connection to Redis, with the behaviour of ioredis: replies arrive in order, commands fail if a reply
 * takes too long although they may still be executed later, and nothing is queued without a connection.
 */
export class SimulatedRedisClient extends EventEmitter {
  status: 'wait' | 'ready' | 'reconnecting' | 'end' = 'wait';
  readonly #process: SimulatedProcess;
  readonly #time: VirtualTime;
  readonly #redis: SimulatedRedis;
  readonly #pending = new Set<Pending>();
  /** Distinguishes this connection from earlier ones. */
  #connection = 0;
  /** Identifies the server by the number of its starts. */
  #start = 0;
  #attempts = 0;
  /** When the last reply arrived, or when the first command after an idle period was sent. */
  #heard_ms = 0;
  #latency_ms = LATENCY_MS;
  #packets: Record<'arrives' | 'answers', Packet> = { arrives: NO_PACKET, answers: NO_PACKET };
  /** Data on their way to an unreachable server. The network keeps them and delivers them in the end. */
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

  /** Blocks both directions until {@link heal}; the network keeps the packets. */
  cut(): void {
    this.#isCut = true;
  }

  heal(): void {
    this.#isCut = false;
    const held = this.#held;
    this.#held = [];
    for (const deliver of held) deliver();
  }

  /** Sets the latency from now on, in each direction. */
  slow(latency_ms = LATENCY_MS): void {
    this.#latency_ms = latency_ms;
  }

  /** From now on, commands are executed, but their replies are lost with the connection. */
  loseReplies(): void {
    this.#losesReplies = true;
  }

  /** Breaks the connection because the server has gone. */
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
      // Data sent to a lost server don't reach its successor.
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

  /** Keeps the order in each direction; data sent in the same step arrive together. */
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
