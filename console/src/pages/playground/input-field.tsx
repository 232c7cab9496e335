import type { KeyboardEvent } from 'react'
import { Field, TextArea } from '../../ui/forms/field.tsx'
import { readInput } from './input.ts'

/** What an agent is given: a message, or where it has an input schema an object as JSON. */
export function InputField({
  schema,
  text,
  hint,
  rows,
  onChange,
  send,
}: {
  schema: Record<string, unknown> | undefined
  text: string
  /** What is said of a message. */
  hint: string
  rows: number
  onChange: (text: string) => void
  /** What Ctrl Enter does. */
  send?: () => void
}) {
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!send || event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    send()
  }
  if (!schema)
    return (
      <Field label="Message" hint={hint}>
        <TextArea
          rows={rows}
          value={text}
          onChange={({ target: { value } }) => onChange(value)}
          onKeyDown={onKeyDown}
        />
      </Field>
    )
  const read = readInput(text, schema)
  return (
    <div className="space-y-2">
      <Field
        label="Input"
        hint={`A JSON object, as the agent’s input schema describes it.${send ? ' Ctrl Enter sends it.' : ''}`}
        fault={'fault' in read && text.trim() !== '' ? read.fault : undefined}
      >
        <TextArea
          rows={rows + 3}
          spellCheck={false}
          className="font-mono text-sm"
          value={text}
          onChange={({ target: { value } }) => onChange(value)}
          onKeyDown={onKeyDown}
        />
      </Field>
      <details>
        <summary className="min-h-6 w-fit text-sm text-soft">Show the schema</summary>
        <pre
          tabIndex={0}
          aria-label="What the agent takes"
          className="mt-1 max-h-60 overflow-auto rounded-md border border-line bg-quiet p-2 text-sm"
        >
          {JSON.stringify(schema, undefined, 2)}
        </pre>
      </details>
    </div>
  )
}
