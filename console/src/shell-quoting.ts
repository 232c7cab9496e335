/** A word of a shell command that is taken as it stands. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
