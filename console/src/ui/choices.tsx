/** Choices of which one holds, as buttons beside each other. */
export function Choices<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  /** Undefined where none holds. */
  value: T | undefined
  options: readonly (readonly [T, string])[]
  onChange: (value: T) => void
}) {
  return (
    <div role="group" aria-label={label} className="inline-flex rounded-md border border-line bg-quiet p-0.5">
      {options.map(([name, text]) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === value}
          onClick={() => onChange(name)}
          className={`min-h-7 cursor-pointer rounded px-2.5 text-xs font-medium whitespace-nowrap ${name === value ? 'bg-panel text-text shadow-xs' : 'text-soft hover:text-text'}`}
        >
          {text}
        </button>
      ))}
    </div>
  )
}
