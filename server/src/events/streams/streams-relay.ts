import type { Bus } from './streams-bus.ts'

/** An unfinished message, as far as its text has arrived. */
export interface LiveMessage {
  message_id: string
  text: string
}

/** Notes between relays; ids are of the task and the message. */
type Note =
  /** The sender watches these tasks and has this much text of each; `again` if text was lost. */
  | { want: { task_id: string; message_id: string | null; have: number; again?: true }[] }
  /** Text of a message from a position on, in UTF-16 units. */
  | { text: [task_id: string, message_id: string, at: number, text: string] }
  /** Reasoning text; lost parts are not requested again. */
  | { reasoning: [task_id: string, message_id: string, text: string] }

/** A process that watches a task of this process. */
interface Interest {
  until: number
  message_id: string | null
  /** How much of the message it was sent, and how much it was sent when it last reported. */
  sent: number
  known: number
}

/** Text is collected this long before it is sent. */
const gather_ms = 50
/**
 * A process with readers reports every two seconds (see the hub). One that stops reporting is dropped after this time.
 */
const interest_ms = 7000
/** Minimum interval between requests for lost text, per task. */
const again_ms = 250
/** Maximum bytes of a note, so that it fits a NOTIFY: PostgreSQL refuses 8000 bytes. */
const noteBytesMax = 7000
/** Maximum characters of reasoning that wait to be sent; the rest is dropped. */
const reasoningMax = 20_000
/** Maximum number of ended messages per task, to recognize late text. */
const endedMax = 50

export interface RelayOptions {
  bus: Bus
  /** The unfinished message of a task of this process. */
  messageOf: (task_id: string) => LiveMessage | undefined
  /** Called with text of a message that another process writes; `whole` if it replaces earlier text. */
  received: (task_id: string, message_id: string, text: string, whole: boolean) => void
  reasoned: (task_id: string, message_id: string, text: string) => void
}

/** A task that is watched here and runs in another process. */
interface Watched {
  worker_id: string
  copy: LiveMessage | undefined
  ended: Set<string>
  asked_at: number
}

/**
 * Relays message text only to processes that have readers. A process with a reader repeatedly reports this to the
 * process that runs the task, which sends the text beyond what it sent before. Text has its position, so lost or
 * repeated parts are detected: every process has a prefix of the message without gaps. With a single process, or
 * without readers, nothing is sent.
 */
export class Relay {
  readonly #options: RelayOptions
  /** By task, then worker. */
  readonly #interests = new Map<string, Map<string, Interest>>()
  readonly #watched = new Map<string, Watched>()
  readonly #unsent = new Set<string>()
  readonly #reasoning = new Map<string, LiveMessage>()
  #timer: NodeJS.Timeout | undefined
  readonly #leave: () => void

  constructor(options: RelayOptions) {
    this.#options = options
    this.#leave = options.bus.onNote((note, from) => {
      try {
        this.#receive(note, from)
      } catch {
        // Only Cadre processes send these; invalid notes of other clients of the database are ignored.
      }
    })
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#leave()
  }

  /** Tasks that are watched here, with the workers in other processes that run them. Called every two seconds. */
  watch(tasks: readonly { task_id: string; worker_id: string }[]): void {
    for (const { task_id, worker_id } of tasks) {
      const watched = this.#watched.get(task_id)
      if (watched?.worker_id === worker_id) continue
      this.#watched.set(task_id, { worker_id, copy: undefined, ended: watched?.ended ?? new Set(), asked_at: 0 })
    }
    for (const [worker_id, theirs] of Map.groupBy(tasks, (task) => task.worker_id))
      for (let at = 0; at < theirs.length; at += 50)
        this.#send(worker_id, { want: theirs.slice(at, at + 50).map(({ task_id }) => this.#wish(task_id)) })
  }

  /** The task has no reader here any more, or it runs here. */
  forget(task_id: string): void {
    this.#watched.delete(task_id)
  }

  /** The unfinished message of a task in another process. */
  messageOf(task_id: string): LiveMessage | undefined {
    return this.#watched.get(task_id)?.copy
  }

  /** A message is complete or discarded: text that still arrives is late. */
  ended(task_id: string, message_id: string): void {
    const watched = this.#watched.get(task_id)
    if (!watched) return
    if (watched.copy?.message_id === message_id) watched.copy = undefined
    watched.ended.add(message_id)
    for (const first of watched.ended) if (watched.ended.size > endedMax) watched.ended.delete(first)
  }

  /** The text of a task of this process has grown. */
  grew(task_id: string): void {
    if (this.#interests.has(task_id)) this.#sendSoon(task_id)
  }

  /** The message of a task of this process ends: sends the rest of its text now. */
  ends(task_id: string): void {
    if (this.#unsent.delete(task_id)) this.#sendText(task_id)
  }

  reason(task_id: string, message_id: string, text: string): void {
    if (!this.#interests.has(task_id)) return
    const before = this.#reasoning.get(task_id)
    const so_far = before?.message_id === message_id ? before.text : ''
    if (so_far.length < reasoningMax) this.#reasoning.set(task_id, { message_id, text: so_far + text })
    this.#sendSoon(task_id)
  }

  #sendSoon(task_id: string): void {
    this.#unsent.add(task_id)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      for (const id of this.#unsent) this.#sendText(id)
      this.#unsent.clear()
    }, gather_ms)
    this.#timer.unref()
  }

  /** Sends each watching process the text that it lacks. */
  #sendText(task_id: string): void {
    const message = this.#options.messageOf(task_id)
    const reasoning = this.#reasoning.get(task_id)
    this.#reasoning.delete(task_id)
    const interests = this.#interests.get(task_id)
    for (const [worker_id, interest] of interests ?? []) {
      if (interest.until < performance.now()) {
        interests!.delete(worker_id)
        continue
      }
      for (const { text } of pieces(reasoning?.text ?? '', 0))
        this.#send(worker_id, { reasoning: [task_id, reasoning!.message_id, text] })
      if (!message) continue
      if (interest.message_id !== message.message_id)
        Object.assign(interest, { message_id: message.message_id, sent: 0, known: 0 })
      for (const { at, text } of pieces(message.text, interest.sent))
        this.#send(worker_id, { text: [task_id, message.message_id, at, text] })
      interest.sent = message.text.length
    }
    if (interests?.size === 0) this.#interests.delete(task_id)
  }

  #send(worker_id: string, note: Note): void {
    this.#options.bus.send(worker_id, note)
  }

  #wish(task_id: string): { task_id: string; message_id: string | null; have: number } {
    const copy = this.#watched.get(task_id)?.copy
    return { task_id, message_id: copy?.message_id ?? null, have: copy?.text.length ?? 0 }
  }

  #receive(sent: unknown, from: string): void {
    const note = sent as Partial<Record<'want' | 'text' | 'reasoning', unknown>> | null
    if (Array.isArray(note?.want)) for (const wish of note.want) this.#wanted(wish as Wish, from)
    if (Array.isArray(note?.text)) this.#received(note.text as Text, from)
    if (Array.isArray(note?.reasoning)) {
      const [task_id, message_id, text] = note.reasoning as [string, string, string]
      if (this.#watched.get(task_id)?.worker_id === from) this.#options.reasoned(task_id, message_id, text)
    }
  }

  /** Another process watches a task of this one. */
  #wanted({ task_id, message_id, have, again }: Wish, from: string): void {
    const all = this.#interests.get(task_id) ?? new Map<string, Interest>()
    const interest = all.get(from) ?? { until: 0, message_id, sent: have, known: have }
    // Text that was sent before its last report and is still missing was lost.
    const lost = message_id === interest.message_id ? have < interest.known : interest.known > 0
    if (again || lost) Object.assign(interest, { message_id, sent: have })
    interest.known = interest.sent
    interest.until = performance.now() + interest_ms
    this.#interests.set(task_id, all.set(from, interest))
    this.#sendSoon(task_id)
  }

  #received([task_id, message_id, at, text]: Text, from: string): void {
    const watched = this.#watched.get(task_id)
    if (watched?.worker_id !== from || watched.ended.has(message_id)) return
    const { copy } = watched
    const have = copy?.message_id === message_id ? copy.text.length : 0
    if (at > have) return this.#askAgain(task_id, watched)
    const more = text.slice(have - at)
    if (copy?.message_id !== message_id) {
      watched.copy = { message_id, text }
      this.#options.received(task_id, message_id, text, true)
    } else if (more !== '') {
      copy.text += more
      this.#options.received(task_id, message_id, more, false)
    }
  }

  #askAgain(task_id: string, watched: Watched): void {
    if (performance.now() - watched.asked_at < again_ms) return
    watched.asked_at = performance.now()
    this.#send(watched.worker_id, { want: [{ ...this.#wish(task_id), again: true }] })
  }
}

type Wish = Extract<Note, { want: unknown }>['want'][number]
type Text = Extract<Note, { text: unknown }>['text']

/** Splits text from a position on into pieces that fit a note, between characters. */
function pieces(text: string, from: number): { at: number; text: string }[] {
  const found: { at: number; text: string }[] = []
  for (let at = from; at < text.length;) {
    let end = Math.min(text.length, at + noteBytesMax)
    // In JSON a character takes up to six bytes.
    while (Buffer.byteLength(JSON.stringify(text.slice(at, end))) > noteBytesMax) end = at + Math.ceil((end - at) / 2)
    if (end < text.length && isLowSurrogate(text, end)) end -= 1
    found.push({ at, text: text.slice(at, end) })
    at = end
  }
  return found
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff
}
