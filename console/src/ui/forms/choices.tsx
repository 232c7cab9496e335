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
    <div
      role="group"
      aria-label={label}
      className="inline-flex min-h-8 max-w-full flex-wrap rounded-md border border-edge bg-quiet p-px"
    >
      {options.map(([name, text]) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === value}
          onClick={() => onChange(name)}
          className={`cursor-pointer rounded px-2.5 text-sm max-sm:min-h-9 max-sm:grow font-medium focus-visible:-outline-offset-2 whitespace-nowrap ${name === value ? 'bg-panel text-text shadow-xs' : 'text-soft hover:text-text'}`}
        >
          {text}
        </button>
      ))}
    </div>
  )
}
