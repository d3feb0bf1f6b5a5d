import type { Time } from '../../../src/lib/time.ts';
import type { VirtualTime } from '../virtual-time.ts';

interface Due {
  readonly callback: () => void;
  isCancelled: boolean;
}

/** The process of one replica: its clock, and everything that happens in it. It can be stopped (SIGSTOP) and killed. */
export class SimulatedProcess implements Time {
  readonly #time: VirtualTime;
  /** The error of its wall clock. */
  readonly #skew_ms: number;
  #state: 'running' | 'stopped' | 'dead' = 'running';
  #until_ms = 0;
  /** Timers and input that became due while the process was stopped. */
  #timers: Due[] = [];
  #inputs: Due[] = [];

  constructor(time: VirtualTime, skew_ms: number) {
    this.#time = time;
    this.#skew_ms = skew_ms;
  }

  get isDead(): boolean {
    return this.#state === 'dead';
  }

  get isStopped(): boolean {
    return this.#state === 'stopped';
  }

  now(): number {
    return this.#time.now();
  }

  wall(): number {
    return this.#time.wall() + this.#skew_ms;
  }

  after(delay_ms: number, callback: () => void): () => void {
    const due: Due = { callback, isCancelled: false };
    const cancel = this.#time.after(delay_ms, () => this.#happen(due, this.#timers));
    return () => {
      due.isCancelled = true;
      cancel();
    };
  }

  /** Runs `callback` as external input. */
  receive(callback: () => void): void {
    this.#happen({ callback, isCancelled: false }, this.#inputs);
  }

  kill(): void {
    this.#state = 'dead';
  }

  /** `readsFirst`: when it continues, the process reads pending input before late timers fire. */
  stop(for_ms: number, readsFirst: boolean): void {
    if (this.#state === 'dead') return;
    this.#state = 'stopped';
    this.#until_ms = Math.max(this.#until_ms, this.#time.now() + for_ms);
    this.#time.after(for_ms, () => {
      if (this.#state !== 'stopped' || this.#time.now() < this.#until_ms) return;
      this.#state = 'running';
      const timers = this.#timers;
      const inputs = this.#inputs;
      this.#timers = [];
      this.#inputs = [];
      for (const due of readsFirst ? [...inputs, ...timers] : [...timers, ...inputs])
        this.#time.after(0, () => this.#happen(due, this.#timers));
    });
  }

  #happen(due: Due, meanwhile: Due[]): void {
    if (due.isCancelled || this.#state === 'dead') return;
    if (this.#state === 'running') due.callback();
    else if (meanwhile === this.#timers) this.#timers.push(due);
    else this.#inputs.push(due);
  }
}
