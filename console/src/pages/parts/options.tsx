/** Choices of a list, as the names of values; one with a reason beside it cannot be chosen. */
export function Options({
  of,
  refused = {},
}: {
  of: Readonly<Record<string, string>>
  refused?: Readonly<Record<string, string | undefined>>
}) {
  return Object.entries(of).map(([value, label]) => (
    <option key={value} value={value} disabled={refused[value] !== undefined}>
      {refused[value] === undefined ? label : `${label}: ${refused[value]}`}
    </option>
  ))
}
