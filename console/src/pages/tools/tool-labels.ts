import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'

/** What a safety means for a person. */
export const safetyWords: Record<ToolSafety, string> = {
  safe: 'Changes nothing. A call is repeated after a crash.',
  keyed: 'The receiver recognizes repeated calls by their key. A call is repeated after a crash.',
  unsafe: 'May change something. After a crash in the middle of a call, a person is asked.',
}

export const safetyTones = { safe: 'good', keyed: 'info', unsafe: 'warn' } as const
