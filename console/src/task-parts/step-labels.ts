import { formatCount } from '../format.ts'
import type { CompactionOutput, Step } from './types.ts'

/** What a step is called. */
export function stepTitle({ type, name }: Pick<Step, 'type' | 'name'>): string {
  return type === 'compaction' ? 'Context compacted' : name
}

/** What a compaction did, in a sentence. */
export function compactionWords({ status, output }: Pick<Step, 'status' | 'output'>): string {
  const { before_step } = (output ?? {}) as CompactionOutput
  if (status === 'started') return 'The conversation so far is being summarized.'
  if (before_step === undefined) return 'Earlier steps were to be replaced by a summary.'
  // Before the task's own steps there is what was said in its thread.
  if (before_step === 0)
    return 'Earlier messages of the thread were replaced by a summary. They are still in the thread.'
  return before_step === 1
    ? 'The first step was replaced by a summary. It is still in this task; the model no longer reads it.'
    : `The first ${formatCount(before_step)} steps were replaced by a summary. They are still in this task; the model no longer reads them.`
}
