import { useState } from 'react'
import { TextInput } from '../../ui/forms/field.tsx'

/** Words with commas between. What is typed stays as it is typed; a list that comes from elsewhere takes its place. */
export function ListInput({
  value,
  onChange,
}: {
  value: readonly string[]
  /** Called with the entries, without duplicates. */
  onChange: (terms: string[]) => void
}) {
  const [text, setText] = useState('')
  const shown = wordsIn(text).join('\n') === value.join('\n') ? text : value.join(', ')
  return (
    <TextInput
      autoComplete="off"
      value={shown}
      onChange={({ target }) => {
        setText(target.value)
        onChange(wordsIn(target.value))
      }}
    />
  )
}

function wordsIn(text: string): string[] {
  return [...new Set(text.split(',').map((word) => word.trim()))].filter((word) => word !== '')
}
