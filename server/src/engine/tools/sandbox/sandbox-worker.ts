import { readlinkSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { parentPort, receiveMessageOnPort } from 'node:worker_threads'
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  RELEASE_SYNC,
} from 'quickjs-emscripten'
import {
  sandboxTextMax,
  type SandboxReply,
  type SandboxRequest,
  type SandboxResult,
  type SandboxThread,
} from './sandbox-job.ts'
import { prelude } from './sandbox-prelude.ts'

/**
 * The thread of one program: an interpreter in WebAssembly that reaches only its own memory. It makes the interpreter ready and
 * waits for its program. It ends when its time is over; a thread that does not is terminated from outside (`sandbox.ts`).
 */

/** Of the language, but not of its types without a browser's. */
declare const WebAssembly: { Memory: new (size: { initial: number; maximum: number }) => { buffer: ArrayBuffer } }

/** Pages of 64 KiB: what the interpreter starts with, and what no program can make it exceed. */
const memory_pages = { initial: 256, maximum: 1280 }
/** Of that, what programs may use: an error of theirs before the interpreter itself has nothing left. */
const memory_bytes = 64 * 1024 * 1024
/** Of the interpreter's own stack. More would overflow the thread's, which no program could catch. */
const stack_bytes = 256 * 1024
/** Jobs (continuations of promises) between two looks at the clock. */
const jobsAtOnce = 1000

const wasmMemory = new WebAssembly.Memory(memory_pages)
const quickjs = await newQuickJSWASMModuleFromVariant(newVariant(RELEASE_SYNC, { wasmMemory }))

function run({ job: { code, env, timeout_ms }, short_ms, host }: SandboxThread): SandboxResult {
  const runtime = quickjs.newRuntime()
  runtime.setMemoryLimit(memory_bytes)
  runtime.setMaxStackSize(stack_bytes)
  const context = runtime.newContext()
  const logs = new Lines()
  const began_at = performance.now()
  const deadline = began_at + timeout_ms
  const ask = (request: SandboxRequest): SandboxReply => askHost(host, request, deadline - performance.now())
  const [show, explain] = prepare(context, env, logs, ask)
  const seconds = (): number => (performance.now() - began_at) / 1000
  let isShort = true
  const isLate = (): boolean => {
    const now = performance.now()
    if (isShort && now - began_at > short_ms) {
      isShort = false
      stepBack()
    }
    return now > deadline
  }
  runtime.setInterruptHandler(isLate)

  const textOf = (how: QuickJSHandle, value: QuickJSHandle): string => {
    const result = context.callFunction(how, context.undefined, value)
    return result.error ? noMemory : context.getString(result.value).slice(0, sandboxTextMax)
  }
  const fail = (error: QuickJSHandle): SandboxResult => {
    // Without memory for an error the interpreter throws null. Its memory never shrinks, so it shows that.
    const isFull = wasmMemory.buffer.byteLength > memory_bytes && context.sameValue(error, context.null)
    const text = isFull ? noMemory : textOf(explain, error)
    return ended(text === noMemory || text.startsWith('InternalError: out of memory') ? 'memory' : undefined, text)
  }
  const ended = (limit: SandboxResult['limit'], text: string): SandboxResult =>
    isLate()
      ? { outcome: 'error', limit: 'time', text: 'The time is over.', logs: logs.text, seconds: seconds() }
      : { outcome: 'error', ...(limit === undefined ? {} : { limit }), text, logs: logs.text, seconds: seconds() }
  try {
    const started = context.evalCode(asProgram(context, code), 'run.js')
    if (started.error) return fail(started.error)
    // What was begun is brought to its end, also where the value does not wait for it.
    while (runtime.hasPendingJob() && !isLate()) {
      const jobs = runtime.executePendingJobs(jobsAtOnce)
      if (jobs.error) return fail(jobs.error)
    }
    const state = context.getPromiseState(started.value)
    if (state.type === 'pending')
      return ended(undefined, 'The result is a promise that nothing settles: there are no timers.')
    if (state.type === 'rejected') return fail(state.error)
    const text = textOf(show, state.value)
    if (isLate() || text === noMemory) return ended('memory', text)
    return { outcome: 'value', text, logs: logs.text, seconds: seconds() }
  } catch (error) {
    // The thread's own stack: what the program nested (brackets, calls of the interpreter itself) goes too deep.
    if (error instanceof RangeError) return ended('crash', 'The program is nested too deeply.')
    throw error
  }
}

/** Linux has a priority for each thread; elsewhere this does nothing. */
function stepBack(): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // The program goes on at the priority of the process.
  }
}

const noMemory = 'InternalError: out of memory'

/** The program as it stands, or as the body of a function where it has `return` or `await` at its top. */
function asProgram(context: QuickJSContext, code: string): string {
  const body = `(async () => {${code}\n})()`
  if (compiles(context, code)) return code
  return compiles(context, body) ? body : code
}

function compiles(context: QuickJSContext, code: string): boolean {
  const result = context.evalCode(code, 'run.js', { compileOnly: true })
  result.dispose()
  return !result.error
}

/** Sets up the program's console and environment; returns how values and errors become text. */
function prepare(
  context: QuickJSContext,
  env: SandboxThread['job']['env'],
  logs: Lines,
  ask: (request: SandboxRequest) => SandboxReply,
): [QuickJSHandle, QuickJSHandle] {
  const given = (reply: SandboxReply): QuickJSHandle | { error: QuickJSHandle } => {
    if ('error' in reply) return { error: context.newError(reply.error) }
    if ('file_id' in reply) return context.newString(reply.file_id)
    return context.newArrayBuffer(reply.bytes.slice().buffer)
  }
  const read = context.newFunction('read', (id) => given(ask({ ask: 'read', file_id: context.getString(id) })))
  const save = context.newFunction('save', (name, content, type) => {
    const isText = context.typeof(content) === 'string'
    return given(
      ask({
        ask: 'save',
        name: context.getString(name),
        content: isText ? context.getString(content) : context.getArrayBuffer(content).value.slice(),
        media_type: context.getString(type) || undefined,
      }),
    )
  })
  const keep = context.newFunction('keep', (text) => logs.add(context.getString(text)))
  const give = context.unwrapResult(context.evalCode(prelude, 'prelude.js'))
  const [json, max] = [context.newString(JSON.stringify(env)), context.newNumber(sandboxTextMax)]
  const pair = context.unwrapResult(context.callFunction(give, context.undefined, keep, json, max, read, save))
  return [context.getProp(pair, 0), context.getProp(pair, 1)]
}

/** Asks the host and waits: a program's calls are synchronous, so `await` before them changes nothing. */
function askHost(host: SandboxThread['host'], request: SandboxRequest, left_ms: number): SandboxReply {
  if (!host) return { error: 'Files are not available here.' }
  Atomics.store(host.answered, 0, 0)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origins
  host.port.postMessage(request)
  Atomics.wait(host.answered, 0, 0, Math.max(0, left_ms))
  return (receiveMessageOnPort(host.port)?.message as SandboxReply | undefined) ?? { error: 'The time is over.' }
}

/** Lines of the console up to their bound. */
class Lines {
  text = ''
  add(line: string): void {
    const left = sandboxTextMax - this.text.length
    if (left > 0) this.text += `${line}\n`.slice(0, left)
  }
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origins
parentPort?.once('message', (thread: SandboxThread) => parentPort?.postMessage(run(thread)))
