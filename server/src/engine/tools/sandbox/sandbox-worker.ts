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
 * The thread of one program: an interpreter in WebAssembly that can access only its own memory. It prepares the
 * interpreter and waits for its program. It ends when the program's time is over; otherwise `sandbox.ts` terminates it.
 */

/** Part of the language, but its types come only with those of browsers. */
declare const WebAssembly: { Memory: new (size: { initial: number; maximum: number }) => { buffer: ArrayBuffer } }

/** Initial and maximum memory of the interpreter in pages of 64 KiB. */
const memory_pages = { initial: 256, maximum: 1280 }
/**
 * Memory of programs. It is less than the maximum, so that a program gets an error before the interpreter runs out of
 * memory.
 */
const memory_bytes = 64 * 1024 * 1024
/** Stack of the interpreter. A larger one would overflow the thread's stack, which no program could catch. */
const stack_bytes = 256 * 1024
/** Number of jobs (continuations of promises) between two checks of the clock. */
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
      lowerPriority()
    }
    return now > deadline
  }
  runtime.setInterruptHandler(isLate)

  const textOf = (how: QuickJSHandle, value: QuickJSHandle): string => {
    const result = context.callFunction(how, context.undefined, value)
    return result.error ? noMemory : context.getString(result.value).slice(0, sandboxTextMax)
  }
  const fail = (error: QuickJSHandle): SandboxResult => {
    // Without memory for an error, the interpreter throws null. Its memory never shrinks, so its size shows that.
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
    // Pending jobs are run to their end, even if the value does not wait for them.
    while (runtime.hasPendingJob() && !isLate()) {
      const jobs = runtime.executePendingJobs(jobsAtOnce)
      if (jobs.error) return fail(jobs.error)
    }
    const state = context.getPromiseState(started.value)
    if (state.type === 'pending')
      return ended(undefined, 'The result is a promise that never settles. The sandbox has no timers.')
    if (state.type === 'rejected') return fail(state.error)
    const text = textOf(show, state.value)
    if (isLate() || text === noMemory) return ended('memory', text)
    return { outcome: 'value', text, logs: logs.text, seconds: seconds() }
  } catch (error) {
    // The thread's stack overflowed: the program nests brackets or calls of the interpreter too deeply.
    if (error instanceof RangeError) return ended('crash', 'The program is nested too deeply.')
    throw error
  }
}

/** Lowers the priority of this thread. Linux has priorities of threads; on other systems this does nothing. */
function lowerPriority(): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // The program continues at the priority of the process.
  }
}

const noMemory = 'InternalError: out of memory'

/** The program unchanged, or as the body of an async function if it has `return` or `await` at its top level. */
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

/**
 * Sets up the program's console, environment and files; returns the functions that turn values and errors into text.
 */
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

/**
 * Sends a request to the host and blocks until the reply: calls of a program are synchronous, so `await` before them
 * has no effect.
 */
function askHost(host: SandboxThread['host'], request: SandboxRequest, left_ms: number): SandboxReply {
  if (!host) return { error: 'Files are not available here.' }
  Atomics.store(host.answered, 0, 0)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origins
  host.port.postMessage(request)
  Atomics.wait(host.answered, 0, 0, Math.max(0, left_ms))
  return (receiveMessageOnPort(host.port)?.message as SandboxReply | undefined) ?? { error: 'The time is over.' }
}

/** Lines of the console up to their maximum. */
class Lines {
  text = ''
  add(line: string): void {
    const left = sandboxTextMax - this.text.length
    if (left > 0) this.text += `${line}\n`.slice(0, left)
  }
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origins
parentPort?.once('message', (thread: SandboxThread) => parentPort?.postMessage(run(thread)))
