import { createHash } from 'node:crypto'
import { isObject } from '#contract/core/merge-patch.ts'
import { outsideMarks, outsideNote } from '#contract/doors/outside-data.ts'
import { sourceDefinitions, triggerBounds, type TriggerSource } from '#contract/doors/trigger-sources.ts'
import { taskBounds } from '#contract/tasks/tasks.ts'
import { cleanText, cleanValue, cutText } from '../../platform/clean-text.ts'
import { asText, fill, hasPlace, onlyPlace, valueAt, type DeliveryView } from './paths.ts'

/**
 * The input of the task for a delivery. A text becomes one message of the user, in which all external data stands
 * between marks that the sender cannot guess, with a note that it is data. An object, for an agent with an
 * `input_schema`, has the values unchanged, because its structure shows what is data.
 */
export function renderInput(
  template: string | Record<string, unknown> | null,
  view: DeliveryView,
  mark: string,
): string | Record<string, unknown> {
  if (isObject(template)) return renderObject(template, view)
  const text = template ?? `A delivery came to the trigger {{trigger.name}}:\n\n{{body}}`
  if (!hasPlace(text)) return text
  const [begin, end] = outsideMarks(mark)
  const note = outsideNote(mark, sourceDefinitions[view.trigger.source as TriggerSource].sender)
  const filled = fill(text, view, (value, path) =>
    isFromOutside(path) ? `${begin}${bounded(asText(value))}${end}` : asText(value),
  )
  return cutText(`${note}\n\n${filled}`, taskBounds.input - 100)
}

/** The mark of a delivery, which a sender cannot guess. */
export function markOf(delivery_id: string): string {
  return createHash('sha256').update(`mark ${delivery_id}`).digest('hex').slice(0, 8)
}

function isFromOutside(path: string): boolean {
  return /^(?:body|headers)(?:\.|$)/.test(path)
}

function bounded(text: string): string {
  return cutText(cleanText(text), triggerBounds.value)
}

/**
 * A text that consists of one placeholder becomes the value with its type; in other texts the value is inserted as
 * text.
 */
function renderObject(template: Record<string, unknown>, view: DeliveryView): Record<string, unknown> {
  const render = (value: unknown): unknown => {
    if (typeof value === 'string') {
      const only = onlyPlace(value)
      if (only !== undefined) return boundedValue(valueAt(view, only))
      return fill(value, view, (found) => bounded(asText(found)))
    }
    if (Array.isArray(value)) return value.map(render)
    if (isObject(value)) return members(value, render)
    return value
  }
  return members(template, render)
}

function boundedValue(value: unknown): unknown {
  return typeof value === 'string' ? bounded(value) : cleanValue(value)
}

/** Renders the members, and drops those without a value. */
function members(of: Record<string, unknown>, render: (value: unknown) => unknown): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(of).flatMap(([name, value]) => {
      const rendered = render(value)
      return rendered === undefined ? [] : [[name, rendered] as const]
    }),
  )
}

/** The thread key of a delivery; null if it has none. A long key is replaced by its hash. */
export function renderThreadKey(template: string | null, view: DeliveryView): string | null {
  if (template === null) return null
  // Without any value there is no key, so that unrelated deliveries do not share a thread.
  let isEmpty = hasPlace(template)
  const key = fill(template, view, (value) => {
    const text = asText(value)
    if (text !== '') isEmpty = false
    return text
  })
  return isEmpty ? null : shortened(key)
}

/** An identifier as a key; a long one is replaced by its hash. */
export function shortened(text: string): string {
  const clean = cleanText(text).trim()
  if (clean.length <= triggerBounds.thread_key) return clean
  return `sha256:${createHash('sha256').update(clean).digest('hex')}`
}
