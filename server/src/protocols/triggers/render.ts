import { createHash } from 'node:crypto'
import { isObject } from '#contract/core/merge-patch.ts'
import { outsideMarks, outsideNote } from '#contract/doors/outside-data.ts'
import { sourceDefinitions, triggerBounds, type TriggerSource } from '#contract/doors/trigger-sources.ts'
import { taskBounds } from '#contract/tasks/tasks.ts'
import { cleanText, cleanValue, cutText } from '../../platform/clean-text.ts'
import { asText, fill, hasPlace, onlyPlace, valueAt, type DeliveryView } from './paths.ts'

/**
 * What an agent is asked about a delivery. A text becomes one message of the user in which everything that came from outside stands
 * between marks that the sender cannot know, and which says that it is data. An object, for an agent with an `input_schema`, has
 * the values as they are: its form says what is data.
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

/** The mark of a delivery: no sender can know it. */
export function markOf(delivery_id: string): string {
  return createHash('sha256').update(`mark ${delivery_id}`).digest('hex').slice(0, 8)
}

function isFromOutside(path: string): boolean {
  return /^(?:body|headers)(?:\.|$)/.test(path)
}

function bounded(text: string): string {
  return cutText(cleanText(text), triggerBounds.value)
}

/** A text that is one place gets the value as it is, with its type; in others it is put as text. */
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

/** Without members for which a delivery has nothing. */
function members(of: Record<string, unknown>, render: (value: unknown) => unknown): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(of).flatMap(([name, value]) => {
      const rendered = render(value)
      return rendered === undefined ? [] : [[name, rendered] as const]
    }),
  )
}

/** The key of the thread of a delivery; null where it has none. A long one stands as its hash. */
export function renderThreadKey(template: string | null, view: DeliveryView): string | null {
  if (template === null) return null
  // A key of which every part is missing is none: deliveries that have nothing in common share no thread.
  let isEmpty = hasPlace(template)
  const key = fill(template, view, (value) => {
    const text = asText(value)
    if (text !== '') isEmpty = false
    return text
  })
  return isEmpty ? null : shortened(key)
}

/** An identifier of a delivery or a thread that is short enough to be a key. */
export function shortened(text: string): string {
  const clean = cleanText(text).trim()
  if (clean.length <= triggerBounds.thread_key) return clean
  return `sha256:${createHash('sha256').update(clean).digest('hex')}`
}
