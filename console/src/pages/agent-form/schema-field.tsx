import { useState, type ReactNode } from 'react'
import { readSchema } from '../../agents/schema-text.ts'
import { Field, TextArea } from '../../ui/forms/field.tsx'

const example = `{
  "type": "object",
  "properties": { "city": { "type": "string" } },
  "required": ["city"]
}`

/** A JSON Schema as JSON; empty, there is none. What is none stays in the field, and says what is wrong. */
export function SchemaField({
  label,
  hint,
  value,
  fault,
  onChange,
  onFault,
}: {
  label: string
  hint: string
  value: unknown
  fault: ReactNode
  onChange: (value: Record<string, unknown> | undefined) => void
  onFault: (fault: string | undefined) => void
}) {
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, undefined, 2)))
  return (
    <Field label={label} hint={hint} fault={fault}>
      <TextArea
        rows={8}
        spellCheck={false}
        className="font-mono text-sm"
        placeholder={example}
        value={text}
        onChange={({ target: { value } }) => {
          setText(value)
          const read = readSchema(value)
          onFault('fault' in read ? read.fault : undefined)
          if (!('fault' in read)) onChange(read.schema)
        }}
      />
    </Field>
  )
}
