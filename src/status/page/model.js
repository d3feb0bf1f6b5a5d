/** The replica's own limits. */
const ENDED_MAX = 200;
const TASKS_MAX = 100;

/** The replica's data as received so far. */
export class Model {
  status;
  /** By key, oldest first. */
  live = new Map();
  /** Newest first. */
  ended = [];
  /** The task with the latest step comes first. */
  tasks = [];
  #now_ms = 0;
  #heard_ms = 0;

  /** Current time by the replica's clock. */
  get now_ms() {
    return this.#now_ms + performance.now() - this.#heard_ms;
  }

  replace({ status, runs, tasks }) {
    this.#hear(runs.now_ms);
    this.status = status;
    this.live = new Map(runs.live.map((run) => [run.key, run]));
    this.ended = runs.ended;
    this.tasks = tasks.tasks;
  }

  update({ now_ms, status, changed = [], progress = [], tasks = [] }) {
    this.#hear(now_ms);
    if (status) this.status = status;
    for (const run of changed) this.#change(run);
    if (tasks.length > 0) this.#changeTasks(tasks);
    for (const { key, ...numbers } of progress) {
      const run = this.live.get(key);
      if (run) this.live.set(key, { ...run, ...numbers });
    }
  }

  #change(run) {
    if (run.state !== 'ended') {
      this.live.set(run.key, run);
      return;
    }
    this.live.delete(run.key);
    // A snapshot may already contain the run.
    if (this.ended.some(({ key }) => key === run.key)) return;
    this.ended = [run, ...this.ended].slice(0, ENDED_MAX);
  }

  #changeTasks(changed) {
    const tasks = new Map([...this.tasks, ...changed].map((task) => [task.task, task]));
    this.tasks = [...tasks.values()]
      .sort((one, other) => other.step_at_ms - one.step_at_ms)
      .slice(0, TASKS_MAX);
  }

  /** When the replica was last heard from, by the browser's clock. */
  get heard_at_ms() {
    return performance.timeOrigin + this.#heard_ms;
  }

  #hear(now_ms) {
    this.#now_ms = now_ms;
    this.#heard_ms = performance.now();
  }
}
