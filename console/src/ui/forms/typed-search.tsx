import { useEffect, useId, useRef, useState } from 'react'
import { SearchInput } from './field.tsx'

/** Milliseconds without a key after which what was typed is looked for. */
const rest_ms = 250

/**
 * A search whose value is stored elsewhere (in the address): it is committed when typing pauses or at Enter, so that
 * not every letter makes a request. `choices` are offered and not required.
 */
export function TypedSearch({
  label,
  value,
  commit,
  choices,
  className,
}: {
  label: string
  value: string
  commit: (value: string) => void
  choices?: readonly string[]
  className?: string
}) {
  const list = useId()
  const [text, setText] = useState(value)
  const lastValue = useRef(value)
  const tell = (text: string): void => {
    if (text === lastValue.current) return
    lastValue.current = text
    commit(text)
  }
  const latest = useRef(tell)
  latest.current = tell
  // The address changed otherwise: back, a link, "clear".
  useEffect(() => {
    if (value === lastValue.current) return
    lastValue.current = value
    setText(value)
  }, [value])
  useEffect(() => {
    const timer = setTimeout(() => latest.current(text.trim()), rest_ms)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <>
      <SearchInput
        label={label}
        value={text}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={({ key }) => key === 'Enter' && tell(text.trim())}
        {...(choices ? { list } : {})}
        {...(className === undefined ? {} : { className })}
      />
      {choices && (
        <datalist id={list}>
          {choices.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      )}
    </>
  )
}
