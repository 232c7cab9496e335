import type { Task } from '#sdk/types.ts'
import type { TaskStreamEvent } from '#sdk/task-stream.ts'
import type { Output } from './output.ts'
import { plain } from './plain.ts'

const frame_ms = 120

/** Members of a task's events, which `--json` may select. */
export const taskEventMembers: readonly (keyof TaskStreamEvent)[] = [
  'sequence',
  'task_id',
  'type',
  'created_at',
  'data',
]

/**
 * Shows a running task. In a terminal: the text as it is written, steps, and a line of progress on standard error; in a pipe
 * only the text; with `--json` one event per line. With `hasText: false` nothing is written to standard output.
 */
export class LiveView {
  readonly #out: Output
  readonly #hasLine: boolean
  readonly #hasText: boolean
  readonly #steps = new Map<string, string>()
  readonly #began = Date.now()
  #counts = { steps: 0, tokens: 0, cost: 0 }
  #written = ''
  #isAtStart = true
  #state = 'connecting'
  #timer: NodeJS.Timeout | undefined
  #isLineShown = false

  constructor(out: Output, { hasText = true } = {}) {
    this.#out = out
    this.#hasText = hasText
    this.#hasLine = process.stderr.isTTY && !out.options.quiet && !out.options.json
    this.resume()
  }

  /** Shows one event. */
  show(event: TaskStreamEvent): void {
    if (this.#out.options.json) return this.#hasText ? this.#out.event(event) : undefined
    const data = event.data as Record<string, unknown>
    switch (event.type) {
      case 'task.snapshot':
        this.#state = event.data.task.status
        break
      case 'message.delta':
        this.#write(event.data.text)
        break
      case 'message.snapshot':
        this.#rest(event.data.text)
        break
      case 'message.completed':
        // A message that was completed before the watch started has sent no text.
        if (data.role === 'assistant') this.#rest(data.content)
        this.#written = ''
        break
      case 'message.discarded':
        this.#say('this answer was interrupted and is written again')
        this.#written = ''
        break
      case 'task.waiting':
        this.#state = 'waiting'
        this.#say(waitingText(data))
        break
      case 'task.started':
      case 'task.resumed':
        this.#state = 'running'
        break
      case 'step.started':
      case 'step.completed':
      case 'step.failed':
        this.#step(event.type, data)
        break
      case 'context.compacted':
        this.#say('the earlier part of the conversation was replaced by a summary')
        break
      default:
      // Other events are not shown.
    }
  }

  /** Clears the line; the next message starts on a new one. */
  pause(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#hideLine()
    if (!this.#isAtStart) this.#write('\n')
  }

  /** Shows the line, at once and from then on. */
  resume(): void {
    if (!this.#hasLine) return
    this.#showLine()
    this.#timer = setInterval(() => this.#showLine(), frame_ms)
  }

  /** Shows how the task ended. */
  end(task: Task): void {
    this.pause()
    if (this.#out.options.json) return
    const { usage, error } = task
    // Without text the command prints the reason.
    if (error && this.#hasText) this.#out.note(`${task.status}: ${plain(error.message)} [${error.code}]`)
    const cost = usage.cost_usd === null ? 'cost unknown' : dollars(usage.cost_usd)
    this.#out.note(
      this.#out.dim(`${task.id} ${task.status}: ${counted(usage.steps, 'step')}, ${tokensOf(usage)}, ${cost}`),
    )
  }

  #step(type: string, data: Record<string, unknown>): void {
    const id = wordOf(data.step_id)
    if (type === 'step.started') {
      // A compaction has the name of its model.
      this.#steps.set(id, data.type === 'compaction' ? 'summing up' : wordOf(data.name) || 'step')
      if (data.type === 'tool_call') this.#say(`→ ${plain(wordOf(data.name))}`)
      return
    }
    const usage = (data.usage ?? {}) as Record<string, unknown>
    this.#counts.steps += 1
    this.#counts.tokens += Number(usage.input_tokens ?? 0) + Number(usage.output_tokens ?? 0)
    this.#counts.cost += Number(usage.cost_usd ?? 0)
    if (type === 'step.failed') this.#say(`✗ ${plain(this.#steps.get(id) ?? 'step')}`)
    this.#steps.delete(id)
  }

  /** Shows the rest of a message's text. */
  #rest(text: unknown): void {
    if (typeof text === 'string' && text.startsWith(this.#written)) this.#write(text.slice(this.#written.length))
  }

  #write(text: string): void {
    if (text === '' || !this.#hasText) return
    this.#hideLine()
    this.#written += text
    process.stdout.write(this.#out.options.isTerminal ? plain(text) : text)
    this.#isAtStart = text.endsWith('\n')
  }

  #say(text: string): void {
    this.#hideLine()
    if (!this.#isAtStart && this.#out.options.isTerminal) process.stdout.write('\n')
    if (this.#out.options.isTerminal) this.#isAtStart = true
    this.#out.note(this.#out.dim(text))
  }

  #showLine(): void {
    // The progress line waits until the current line of text is complete.
    if (!this.#isAtStart) return
    const { steps, tokens, cost } = this.#counts
    const seconds = Math.floor((Date.now() - this.#began) / 1000)
    const now = [...this.#steps.values()].at(-1)
    const text = `${this.#state} ${seconds} s · ${counted(steps, 'step')} · ${counted(tokens, 'token')} · ${dollars(cost)}${now ? ` · ${plain(now)}` : ''}`
    process.stderr.write(`\r\u001B[K${text.slice(0, Math.max(20, (process.stderr.columns || 80) - 1))}`)
    this.#isLineShown = true
  }

  #hideLine(): void {
    if (this.#isLineShown) process.stderr.write('\r\u001B[K')
    this.#isLineShown = false
  }
}

/** Why a task waits, and the command that ends the wait. */
function waitingText({ wait }: Record<string, unknown>): string {
  const { reason, approval_ids } = (wait ?? {}) as Record<string, unknown>
  const [approval] = Array.isArray(approval_ids) ? approval_ids : []
  if (reason === 'approval' && approval !== undefined)
    return `waiting for an approval: \`cadre approvals approve ${wordOf(approval)}\`, or \`deny\``
  return typeof reason === 'string' ? `waiting (${reason})` : 'waiting'
}

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** `908 tokens (512 cached, 64 reasoning)`. */
function tokensOf({ input_tokens, output_tokens, cached_tokens, reasoning_tokens }: Task['usage']): string {
  const parts = [`${cached_tokens} cached`, `${reasoning_tokens} reasoning`].filter((part) => /^[1-9]/.test(part))
  return `${counted(input_tokens + output_tokens, 'token')}${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`
}

function dollars(cost: number): string {
  return `$${cost.toFixed(cost < 0.01 ? 6 : 2)}`
}
