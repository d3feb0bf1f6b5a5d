export {
  EventTooLargeError,
  LedgerError,
  ResultNotKeptError,
  SilenceError,
  StopError,
  StreamInterruptedError,
  UnknownCallError,
} from './errors.ts';
export type { Fetch, ResumableOptions } from './options.ts';
export { resumable } from './resumable.ts';
export type { TaskProgress, TaskStep } from './seen-task.ts';
export { type OpenedRun, type SignedRun, type SignedRunOptions, signedRun } from './signed-run.ts';
export { type Stoppable, type StoppableOptions, stoppable } from './stoppable.ts';
export {
  type EndOptions,
  type ProgressOptions,
  type Task,
  type TaskOptions,
  type Tool,
  type ToolContext,
  type ToolOptions,
  task,
} from './task.ts';
export type { RunStatus, TaskDocument, TaskRecovery, TaskTerms, TaskUsage } from './task-documents.ts';
export type { ToolCall } from './tool-call.ts';
