import { useState, type ReactNode } from 'react'
import { isObject } from '#contract/core/merge-patch.ts'
import { Field, TextArea } from '../../ui/forms/field.tsx'

/** An object as JSON. What is no JSON stays in the field, and says so. */
export function JsonField({
  label,
  hint,
  rows,
  value,
  fault,
  onChange,
  onFault,
}: {
  label: string
  hint: string
  rows: number
  value: Record<string, unknown>
  fault: ReactNode
  onChange: (value: Record<string, unknown>) => void
  onFault: (fault: string | undefined) => void
}) {
  const [text, setText] = useState(() => JSON.stringify(value, undefined, 2))
  return (
    <Field label={label} fault={fault} hint={hint}>
      <TextArea
        rows={rows}
        spellCheck={false}
        className="font-mono text-sm"
        value={text}
        onChange={({ target: { value } }) => {
          setText(value)
          try {
            const read: unknown = JSON.parse(value)
            if (!isObject(read)) throw new SyntaxError('It must be an object')
            onFault(undefined)
            onChange(read)
          } catch (error) {
            onFault(error instanceof Error ? error.message : String(error))
          }
        }}
      />
    </Field>
  )
}
