import { Worker } from 'node:worker_threads'
import { isObject } from '#contract/core/merge-patch.ts'
import { FairTurns, TooManyWait, type Party } from '../../../platform/fair-turns.ts'
import { schemaExcess } from './schema-bounds.ts'
import type { SchemaTask, SchemaVerdict, ValueVerdict } from './schema-task.ts'
import { hasSchema, keepSchema, keepValue, verdictKey } from './verdicts.ts'
import { parseJson } from '../../../platform/parse-json.ts'

/**
 * Schemas of users and servers can take long to compile and to check, so a separate thread does it, one at a time;
 * organizations and projects take turns. Its verdicts are cached, and `schemaError`, `dataError` and similar functions
 * read them. Without a cached verdict, these do the work in their own thread, within its bounds.
 */
const turns = new FairTurns({
  places: 1,
  ofOrganization: 1,
  ofProject: 1,
  waiting: { ofProject: 64, ofOrganization: 128, all: 512 },
})
/**
 * A thread without a response for this long is ended. Its own bounds count CPU time, so a busy machine makes it slow.
 */
const answer_ms = 20_000
const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 }
/** Maximum time for all schemas of one request; the remaining ones are refused. */
const body_ms = 10_000
const busy = 'could not be checked now, because too many others wait; retry later'
const tooMany = `could not be checked: the schemas of one request may take ${body_ms / 1000} s`
const never = new AbortController().signal

/** Members of bodies that have schemas. */
const schemaMembers = new Set(['parameters', 'result_schema', 'input_schema', 'output_schema', 'inputSchema', 'schema'])
/** Maximum depth at which a body has schemas. */
const levelsMax = 6

/** Checks every schema in the body of a request, before anything else is done with it. */
export async function judgeBody(body: unknown, party: Party): Promise<void> {
  await judgeSchemas(schemasIn(body), party, performance.now() + body_ms)
}

/**
 * Checks whether schemas can be used, until `end_ms` by `performance.now()`. The errors of a schema are cached and not
 * thrown.
 */
export async function judgeSchemas(schemas: readonly unknown[], party: Party, end_ms = Infinity): Promise<void> {
  for (const schema of schemas) {
    // A schema beyond the bounds is refused without the thread.
    if (schemaExcess(schema) !== undefined) continue
    const key = verdictKey(schema)
    if (key === undefined || hasSchema(key)) continue
    if (performance.now() > end_ms) {
      keepSchema(key, { fault: tooMany, slow: undefined }, true)
      continue
    }
    const verdict = await ask<SchemaVerdict>({ schema }, party, () => hasSchema(key))
    if (verdict === 'known' || verdict === 'failed') continue
    if (verdict === 'busy') keepSchema(key, { fault: busy, slow: undefined }, true)
    else if (verdict === 'late') keepSchema(key, { fault: 'are too complex', slow: undefined })
    else keepSchema(key, verdict)
  }
}

/** Checks a value by a schema. The error is cached and not thrown. */
export async function judgeValue(schema: unknown, value: unknown, party: Party): Promise<void> {
  if (schemaExcess(schema) !== undefined) return
  const key = verdictKey(schema, value)
  if (key === undefined) return
  const verdict = await ask<ValueVerdict>({ schema, value }, party)
  if (verdict === 'known' || verdict === 'failed') return
  // Kept for a single read, because the same value is rarely checked again.
  keepValue(key, verdict === 'busy' || verdict === 'late' ? { outcome: 'late' } : verdict, true)
}

/** Checks the input of a task, an object or its JSON, for an agent with an `input_schema`. */
export async function judgeInput(config: Record<string, unknown>, input: unknown, party: Party): Promise<void> {
  const schema = config['input_schema']
  if (!isObject(schema)) return
  const value = typeof input === 'string' ? parseJson(input) : input
  if (isObject(value)) await judgeValue(schema, value, party)
}

function schemasIn(body: unknown): unknown[] {
  const found: unknown[] = []
  const open: { value: unknown; depth: number }[] = [{ value: body, depth: 0 }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, depth } = next
    if (typeof value !== 'object' || value === null || depth > levelsMax) continue
    for (const [name, member] of Object.entries(value)) {
      if (schemaMembers.has(name) && isObject(member) && (member['type'] === 'object' || name === 'result_schema'))
        found.push(member)
      else open.push({ value: member, depth: depth + 1 })
    }
  }
  return found
}

let thread: { worker: Worker; ended: Promise<void> } | undefined
let count = 0

async function ask<T>(
  task: SchemaTask,
  party: Party,
  isKnown: () => boolean = () => false,
): Promise<T | 'known' | 'busy' | 'late' | 'failed'> {
  let leave: () => void
  try {
    leave = await turns.take(party, never)
  } catch (error) {
    if (error instanceof TooManyWait) return 'busy'
    throw error
  }
  try {
    return isKnown() ? 'known' : await inThread<T>(task)
  } finally {
    leave()
  }
}

async function inThread<T>(task: SchemaTask): Promise<T | 'late' | 'failed'> {
  const { worker, ended } = (thread ??= startThread())
  const id = ++count
  const { promise, resolve } = Promise.withResolvers<T | 'late' | 'failed'>()
  const onMessage = (answer: { id: number; verdict: T | undefined }): void => {
    if (answer.id === id) resolve(answer.verdict ?? 'failed')
  }
  worker.on('message', onMessage)
  void ended.then(() => resolve('late'))
  const timer = setTimeout(() => void worker.terminate(), answer_ms)
  worker.ref()
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origins
  worker.postMessage({ id, task })
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    worker.off('message', onMessage)
    // An idle thread must not keep the process alive.
    worker.unref()
  }
}

function startThread(): { worker: Worker; ended: Promise<void> } {
  const worker = new Worker(new URL('./schema-worker.ts', import.meta.url), {
    resourceLimits,
    env: {},
    stdin: false,
    stdout: true,
    stderr: true,
  })
  const ended = new Promise<void>((resolve) => {
    worker.once('error', () => {})
    worker.once('exit', () => {
      thread = undefined
      resolve()
    })
  })
  return { worker, ended }
}
