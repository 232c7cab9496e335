import type { Task } from '#sdk/types.ts'
import type { TaskStreamEvent } from '#sdk/task-stream.ts'
import type { Output } from './output.ts'
import { plain } from './plain.ts'

const frame_ms = 120

/**
 * Shows a task as it is worked on. At a terminal: the text as it is written, steps beside it, and a line of progress on
 * standard error; in a pipe the text alone; with `--json` each event on its line.
 */
export class LiveView {
  readonly #out: Output
  readonly #hasLine: boolean
  readonly #steps = new Map<string, string>()
  readonly #began = Date.now()
  #counts = { steps: 0, tokens: 0, cost: 0 }
  #written = ''
  #isAtStart = true
  #state = 'connecting'
  #timer: NodeJS.Timeout | undefined
  #isLineShown = false

  constructor(out: Output) {
    this.#out = out
    this.#hasLine = process.stderr.isTTY && !out.options.quiet && !out.options.json
    this.resume()
  }

  /** Shows one event. */
  show(event: TaskStreamEvent): void {
    if (this.#out.options.json) return this.#out.event(event)
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
        // One that was completed before it was watched has told no text.
        if (data.role === 'assistant') this.#rest(data.content)
        this.#written = ''
        break
      case 'message.discarded':
        this.#say('this answer was broken off, and is begun again')
        this.#written = ''
        break
      case 'task.waiting':
        this.#state = 'waiting'
        this.#say('waiting: `cadre approvals list --status pending` shows what for, where it is an approval')
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
      default:
      // Nothing that is shown.
    }
  }

  /** Takes the line away; what is said next stands on a line of its own. */
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

  /** Says how the task ended. */
  end(task: Task): void {
    this.pause()
    if (this.#out.options.json) return
    const { usage, error } = task
    if (error) this.#out.note(`${task.status}: ${plain(error.message)} [${error.code}]`)
    const cost = usage.cost_usd === null ? 'cost unknown' : dollars(usage.cost_usd)
    const tokens = usage.input_tokens + usage.output_tokens
    this.#out.note(
      this.#out.dim(`${task.id} ${task.status}: ${counted(usage.steps, 'step')}, ${counted(tokens, 'token')}, ${cost}`),
    )
  }

  #step(type: string, data: Record<string, unknown>): void {
    const id = wordOf(data.step_id)
    if (type === 'step.started') {
      this.#steps.set(id, wordOf(data.name) || 'step')
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

  /** Of all text of a message what was not shown yet. */
  #rest(text: unknown): void {
    if (typeof text === 'string' && text.startsWith(this.#written)) this.#write(text.slice(this.#written.length))
  }

  #write(text: string): void {
    if (text === '') return
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
    // While text is written in the line where it would stand, the text goes first.
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

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

function dollars(cost: number): string {
  return `$${cost.toFixed(cost < 0.01 ? 6 : 2)}`
}
