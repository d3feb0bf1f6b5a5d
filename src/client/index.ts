export {
  EventTooLargeError,
  LedgerError,
  ResultNotKeptError,
  SilenceError,
  StreamInterruptedError,
  UnknownCallError,
} from './errors.ts';
export type { Fetch, ResumableOptions } from './options.ts';
export { resumable } from './resumable.ts';
export { type Task, type TaskOptions, type Tool, type ToolContext, type ToolOptions, task } from './task.ts';
export type { TaskDocument, TaskTerms } from './task-requests.ts';
export type { ToolCall } from './tool-call.ts';
