import { parentPort } from 'node:worker_threads'
import { judgeSchemaHere, judgeValueHere } from '../arguments.ts'
import { slowPattern } from './slow-patterns.ts'
import type { SchemaTask, SchemaVerdict, ValueVerdict } from './schema-task.ts'

/** The thread that compiles and checks schemas of others: one task after the other, each within its time. */

function judge(task: SchemaTask): SchemaVerdict | ValueVerdict {
  if ('value' in task) return judgeValueHere(task.schema, task.value)
  const fault = judgeSchemaHere(task.schema)
  return { fault, slow: fault === undefined ? slowPattern(task.schema) : undefined }
}

parentPort?.on('message', ({ id, task }: { id: number; task: SchemaTask }) => {
  let verdict: SchemaVerdict | ValueVerdict | undefined
  try {
    verdict = judge(task)
  } catch {
    // A bug in Cadre; the thread that asked then decides.
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origins
  parentPort?.postMessage({ id, verdict })
})
