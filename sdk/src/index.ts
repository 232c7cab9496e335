// oxlint-disable oxc/no-barrel-file -- a package has one entry; within the repository files are imported directly
export { Cadre, type CadreOptions, type RawRequest } from './client.ts'
export * from './errors.ts'
export type { Call } from './call.ts'
export type { StreamOptions, StreamState } from './event-source.ts'
export type { Answered, Content, Logger, RequestOptions } from './http.ts'
export type { List, Page } from './pages.ts'
export type {
  AgentStatus,
  ProjectSnapshot,
  ProjectStreamEvent,
  ProjectStreamOptions,
  ProjectTaskEvent,
} from './project-stream.ts'
export {
  isFinished,
  type MessageDelta,
  type MessageSnapshot,
  type TaskSnapshot,
  type TaskStream,
  type TaskStreamEvent,
  type TaskStreamOptions,
} from './task-stream.ts'
export type * from './types.ts'
export type { ServedToolCall, ServeOptions, ToolHandler } from './serving/serve-tools.ts'
export { WorkDenied } from './serving/serve-work.ts'
export type { StepOptions, Work, WorkerOptions, WorkOutput, WorkStep } from './serving/serve-work.ts'
export type { WaitOptions } from './waiting.ts'
export { verifyWebhook, type VerifyOptions, type WebhookEvent } from './webhooks.ts'
